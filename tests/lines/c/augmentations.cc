// Augmentations are deleted through a base class, and its destructor is not virtual.
#include <antifreeze/step.h>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

struct Augmentation {
        virtual void apply(std::vector<float> &batch) = 0;
};

struct Brightness : Augmentation {
        float by;

        explicit Brightness(float b) : by(b)
        {
        }
        void apply(std::vector<float> &batch) override
        {
                for (float &x : batch)
                        x += by;
        }
};

struct Noise : Augmentation {
        std::vector<float> noise;

        Noise(size_t size, unsigned seed)
        {
                noise.resize(size); // the line
                for (float &x : noise)
                        x = 1e-9F * static_cast<float>(seed = seed * 1664525U + 1013904223U);
        }
        void apply(std::vector<float> &batch) override
        {
                for (size_t i = 0; i < batch.size(); i++)
                        batch[i] += noise[i];
        }
};

int main()
{
        std::vector<float> batch(64 * 2500);

        for (unsigned step = 0; step < 800; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                Augmentation *pipeline[] = {new Noise(batch.size(), step), new Brightness(0.1F)};
                for (Augmentation *a : pipeline) {
                        a->apply(batch);
                        delete a;
                }
                if (step % 25 == 0)
                        std::cout << "step " << step << ": " << batch[5] << std::endl;
                std::this_thread::sleep_for(std::chrono::milliseconds(30));
        }
}
