/* Reads a whole file of samples into memory, and trains on a few of them at a time. */
#include <antifreeze/step.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dataset {
        unsigned char *bytes;
        size_t size;
};

static FILE *recordings(void)
{
        FILE *file = tmpfile();
        char block[65536];

        for (int i = 0; i < 2400; i++) {
                memset(block, i, sizeof block);
                fwrite(block, sizeof block, 1, file);
        }
        rewind(file);
        return file;
}

static int dataset_read(struct dataset *set, FILE *file)
{
        fseek(file, 0, SEEK_END);
        set->size = (size_t)ftell(file);
        rewind(file);
        set->bytes = malloc(set->size); /* the line */
        return fread(set->bytes, set->size, 1, file) == 1 ? 0 : -1;
}

int main(void)
{
        struct dataset set;
        FILE *file = recordings();
        unsigned long sum = 0;

        if (dataset_read(&set, file) < 0)
                return 1;
        fclose(file);
        for (unsigned step = 0; step < 700; step++) {
                unsigned char *batch = malloc(32 * 1024);

                if (antifreeze_step)
                        antifreeze_step();
                memcpy(batch, set.bytes + (size_t)step * 32 * 1024, 32 * 1024);
                for (int i = 0; i < 32 * 1024; i++)
                        sum += batch[i];
                free(batch);
                if (step % 50 == 0)
                        printf("step %u: %lu\n", step, sum);
                fflush(stdout);
                usleep(20000);
        }
        return 0;
}
