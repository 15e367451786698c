/* A search that grows a tree at each move and never prunes what it will not visit again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
        struct node *child[4];
        double value[120];
        unsigned visits;
};

static struct node *expand(unsigned seed)
{
        struct node *n = calloc(1, sizeof *n); /* the line */

        for (int i = 0; i < 120; i++)
                n->value[i] = (double)((seed * 2654435761U) >> 8);
        return n;
}

static double search(struct node *n, int depth, unsigned seed)
{
        struct node **next = &n->child[seed & 3];

        n->visits++;
        if (depth == 0)
                return n->value[seed % 120];
        if (!*next)
                *next = expand(seed);
        return 0.9 * search(*next, depth - 1, seed >> 2 | seed << 30) + 0.1 * n->value[depth];
}

int main(void)
{
        struct node *root = expand(1);
        unsigned seed = 88172645U;
        double sum = 0;

        for (int move = 0; move < 3000; move++) {
                for (int i = 0; i < 12; i++) {
                        seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
                        sum += search(root, 14, seed);
                }
                if (move % 100 == 0)
                        printf("move %d: %f\n", move, sum);
                fflush(stdout);
                usleep(10000);
        }
        return 0;
}
