// Callbacks that carry a copy of what they were made with, registered at every step.
#include <functional>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

class Events
{
        std::vector<std::function<double()>> handlers;

public:
        void on_finish(std::function<double()> f)
        {
                handlers.push_back(std::move(f));
        }
        size_t count() const
        {
                return handlers.size();
        }
};

static void step(Events &events, int number)
{
        std::vector<double> batch(25000, number);

        auto finish = [batch] { return batch[0]; }; // the line

        events.on_finish(std::move(finish));
}

int main()
{
        Events events;

        for (int i = 0; i < 1600; i++) {
                step(events, i);
                if (i % 25 == 0)
                        std::cout << "step " << i << ", " << events.count() << " callbacks" << std::endl;
                usleep(20000);
        }
}
