#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct helper {
        struct afz_pool *pool;
        size_t share;
        pthread_t thread;
};

struct afz_pool {
        pthread_mutex_t lock; /* guards all up to here */
        pthread_cond_t work_is_there, work_is_done;
        uint64_t round; /* rises by one with each piece of work; a helper that has seen it waits for
                           the next */
        size_t pending; /* helpers still at this round's work */
        bool quit;
        afz_pool_work work;
        void *ctx;

        size_t helpers; /* threads made, the caller not counted; fixed once the pool is made */
        struct helper helper[];
};

static void *helper_main(void *arg)
{
        struct helper *self = arg;
        struct afz_pool *pool = self->pool;

        pthread_mutex_lock(&pool->lock);
        for (uint64_t seen = 0;; seen++) {
                while (pool->round == seen && !pool->quit)
                        pthread_cond_wait(&pool->work_is_there, &pool->lock);
                if (pool->quit)
                        break;

                pthread_mutex_unlock(&pool->lock);
                pool->work(pool->ctx, self->share, pool->helpers + 1);
                pthread_mutex_lock(&pool->lock);
                if (--pool->pending == 0)
                        pthread_cond_signal(&pool->work_is_done);
        }
        pthread_mutex_unlock(&pool->lock);
        return NULL;
}

int afz_pool_new(size_t threads, struct afz_pool **ret)
{
        const size_t helpers = threads - 1;
        struct afz_pool *pool = calloc(1, sizeof(*pool) + helpers * sizeof(pool->helper[0]));

        if (!pool)
                return -ENOMEM;
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->work_is_there, NULL);
        pthread_cond_init(&pool->work_is_done, NULL);

        for (size_t i = 0; i < helpers; i++) {
                struct helper *helper = &pool->helper[i];

                *helper = (struct helper){.pool = pool, .share = i + 1};

                const int error = pthread_create(&helper->thread, NULL, helper_main, helper);

                if (error) {
                        afz_pool_free(pool);
                        return -error;
                }
                pool->helpers = i + 1;
        }
        *ret = pool;
        return 0;
}

struct afz_pool *afz_pool_free(struct afz_pool *pool)
{
        if (!pool)
                return NULL;

        pthread_mutex_lock(&pool->lock);
        pool->quit = true;
        pthread_cond_broadcast(&pool->work_is_there);
        pthread_mutex_unlock(&pool->lock);
        for (size_t i = 0; i < pool->helpers; i++)
                pthread_join(pool->helper[i].thread, NULL);

        pthread_cond_destroy(&pool->work_is_done);
        pthread_cond_destroy(&pool->work_is_there);
        pthread_mutex_destroy(&pool->lock);
        free(pool);
        return NULL;
}

void afz_pool_run(struct afz_pool *pool, afz_pool_work work, void *ctx)
{
        if (!pool || pool->helpers == 0) {
                work(ctx, 0, 1);
                return;
        }

        pthread_mutex_lock(&pool->lock);
        pool->work = work;
        pool->ctx = ctx;
        pool->pending = pool->helpers;
        pool->round++;
        pthread_cond_broadcast(&pool->work_is_there);
        pthread_mutex_unlock(&pool->lock);

        work(ctx, 0, pool->helpers + 1);

        pthread_mutex_lock(&pool->lock);
        while (pool->pending > 0)
                pthread_cond_wait(&pool->work_is_done, &pool->lock);
        pthread_mutex_unlock(&pool->lock);
}
