#include "deadlock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum order { WAIT, CROSS, QUIT };

struct afz_deadlock {
        pthread_t loader;

        pthread_mutex_t order_lock;
        pthread_cond_t order_given;
        enum order order; /* what the loader thread shall do */

        pthread_mutex_t queue_lock, stats_lock;
        pthread_barrier_t both_hold_one; /* leaves nothing to luck: no side goes for its second lock
                                            too early */
};

static enum order wait_for_order(struct afz_deadlock *deadlock)
{
        enum order order;

        pthread_mutex_lock(&deadlock->order_lock);
        while (deadlock->order == WAIT)
                pthread_cond_wait(&deadlock->order_given, &deadlock->order_lock);
        order = deadlock->order;
        pthread_mutex_unlock(&deadlock->order_lock);
        return order;
}

static void give_order(struct afz_deadlock *deadlock, enum order order)
{
        pthread_mutex_lock(&deadlock->order_lock);
        deadlock->order = order;
        pthread_cond_signal(&deadlock->order_given);
        pthread_mutex_unlock(&deadlock->order_lock);
}

static void lock_both(struct afz_deadlock *deadlock, pthread_mutex_t *first,
                      pthread_mutex_t *second)
{
        pthread_mutex_lock(first);
        pthread_barrier_wait(&deadlock->both_hold_one);
        pthread_mutex_lock(second);
        pthread_mutex_unlock(second);
        pthread_mutex_unlock(first);
}

/* The queue first, then the statistics: the batch is in, now count it. */
static void *loader_main(void *arg)
{
        struct afz_deadlock *deadlock = arg;

        if (wait_for_order(deadlock) == CROSS)
                lock_both(deadlock, &deadlock->queue_lock, &deadlock->stats_lock);
        return NULL;
}

/* The statistics first, then the queue: to say how long the queue is. */
void afz_deadlock_cross(struct afz_deadlock *deadlock)
{
        give_order(deadlock, CROSS);
        lock_both(deadlock, &deadlock->stats_lock, &deadlock->queue_lock);
}

int afz_deadlock_new(struct afz_deadlock **ret)
{
        struct afz_deadlock *deadlock = calloc(1, sizeof(*deadlock));

        if (!deadlock)
                return -ENOMEM;
        pthread_mutex_init(&deadlock->order_lock, NULL);
        pthread_cond_init(&deadlock->order_given, NULL);
        pthread_mutex_init(&deadlock->queue_lock, NULL);
        pthread_mutex_init(&deadlock->stats_lock, NULL);
        pthread_barrier_init(&deadlock->both_hold_one, NULL, 2);

        const int error = pthread_create(&deadlock->loader, NULL, loader_main, deadlock);

        if (error) {
                free(deadlock);
                return -error;
        }
        pthread_setname_np(deadlock->loader, "afz-loader");
        *ret = deadlock;
        return 0;
}

struct afz_deadlock *afz_deadlock_free(struct afz_deadlock *deadlock)
{
        if (!deadlock)
                return NULL;
        give_order(deadlock, QUIT);
        pthread_join(deadlock->loader, NULL);
        pthread_barrier_destroy(&deadlock->both_hold_one);
        pthread_mutex_destroy(&deadlock->stats_lock);
        pthread_mutex_destroy(&deadlock->queue_lock);
        pthread_cond_destroy(&deadlock->order_given);
        pthread_mutex_destroy(&deadlock->order_lock);
        free(deadlock);
        return NULL;
}
