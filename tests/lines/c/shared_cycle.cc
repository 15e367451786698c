// Parent and child hold each other by shared_ptr, so neither is ever freed.
#include <iostream>
#include <memory>
#include <unistd.h>
#include <vector>

struct Layer {
        std::shared_ptr<Layer> next, previous;
        std::vector<float> activations;

        explicit Layer(size_t units) : activations(units, 0.5F) // the line
        {
        }
};

static float forward(size_t units)
{
        auto first = std::make_shared<Layer>(units);
        auto second = std::make_shared<Layer>(units);

        first->next = second;
        second->previous = first;
        return first->activations[3] + second->activations[5];
}

int main()
{
        float sum = 0;

        for (int step = 0; step < 1600; step++) {
                sum += forward(30000);
                if (step % 25 == 0)
                        std::cout << "step " << step << ": " << sum << std::endl;
                usleep(20000);
        }
}
