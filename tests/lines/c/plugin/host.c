/* Runs a filter from a plugin, a shared library of our own that lies beside the program. */
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        char path[4096];
        double (*filter)(const float *samples, int n) = NULL;
        float samples[4000];
        double sum = 0;
        void *lib;

        (void)argc;
        snprintf(path, sizeof path, "%s", argv[0]);
        strcat(dirname(path), "/filter.so");
        lib = dlopen(path, RTLD_NOW);
        if (!lib)
                return fprintf(stderr, "%s\n", dlerror()), 1;
        *(void **)&filter = dlsym(lib, "filter");
        for (int step = 0; step < 2500; step++) {
                for (int i = 0; i < 4000; i++)
                        samples[i] = (float)(i * step % 1000);
                for (int i = 0; i < 10; i++)
                        sum += filter(samples, 4000);
                if (step % 50 == 0)
                        printf("step %d: %f\n", step, sum);
                fflush(stdout);
                usleep(12000);
        }
        return 0;
}
