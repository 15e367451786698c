// A replay memory in the order of priority, from which nothing is ever thrown out.
#include <antifreeze/step.h>
#include <chrono>
#include <iostream>
#include <map>
#include <thread>
#include <utility>
#include <vector>

struct Transition {
        std::vector<unsigned char> frame;
        int action;
        double reward;
};

class World
{
        unsigned state = 99;

      public:
        Transition act(int action)
        {
                std::vector<unsigned char> frame(96 * 96 * 3); // the line

                for (unsigned char &pixel : frame)
                        pixel = (state = state * 1103515245U + 12345U) >> 24 & 0xff;
                return {std::move(frame), action, (state >> 8) % 100 / 100.0};
        }
};

class Memory
{
        std::multimap<double, Transition> by_priority;

      public:
        void add(Transition t)
        {
                double priority = 1 - t.reward;

                by_priority.emplace(priority, std::move(t));
        }
        const Transition &hardest() const
        {
                return by_priority.rbegin()->second;
        }
        size_t size() const
        {
                return by_priority.size();
        }
};

int main()
{
        World world;
        Memory memory;

        for (int step = 0; step < 900; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int i = 0; i < 18; i++)
                        memory.add(world.act(i % 4));
                if (step % 25 == 0)
                        std::cout << memory.size() << ": " << memory.hardest().reward << std::endl;
                std::this_thread::sleep_for(std::chrono::milliseconds(25));
        }
}
