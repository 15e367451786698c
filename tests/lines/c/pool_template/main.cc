// A pool whose users do not always give back.
#include "pool.hh"
#include <iostream>
#include <unistd.h>

struct Particle {
        double position[3], speed[3];
        double trail[250];

        Particle()
        {
                for (double &t : trail)
                        t = 1;
        }
};

static double collide(Pool<Particle, 64> &pool, int step)
{
        double energy = 0;

        for (int i = 0; i < 120; i++) {
                Particle *p = pool.take();

                p->speed[0] = i * step;
                energy += p->speed[0] * p->trail[i];
                if (i % 2)
                        pool.give(p);
        }
        return energy;
}

int main()
{
        Pool<Particle, 64> pool;

        for (int step = 0; step < 2500; step++) {
                double energy = collide(pool, step);

                if (step % 50 == 0)
                        std::cout << "step " << step << ": " << energy << std::endl;
                usleep(10000);
        }
}
