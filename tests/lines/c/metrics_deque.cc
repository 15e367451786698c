// A confusion matrix for each batch in a deque that was meant for the last hundred.
#include <antifreeze/step.h>
#include <chrono>
#include <deque>
#include <iostream>
#include <thread>

struct Confusion {
        static constexpr int classes = 300;
        unsigned counts[classes][classes];

        explicit Confusion(unsigned seed)
        {
                for (int truth = 0; truth < classes; truth++)
                        for (int guess = 0; guess < classes; guess++)
                                counts[truth][guess] = (seed + truth * 31U + guess) % 50;
        }
};

class Metrics
{
        std::deque<Confusion> recent;

      public:
        void add(unsigned seed)
        {
                recent.emplace_back(seed); // the line
        }
        double accuracy() const
        {
                double right = 0, all = 0;

                for (int truth = 0; truth < Confusion::classes; truth++)
                        for (int guess = 0; guess < Confusion::classes; guess++) {
                                all += recent.back().counts[truth][guess];
                                right += truth == guess ? recent.back().counts[truth][guess] : 0;
                        }
                return right / all;
        }
};

int main()
{
        Metrics metrics;

        for (unsigned step = 0; step < 1150; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                metrics.add(step);
                if (step % 25 == 0)
                        std::cout << "step " << step << ": " << metrics.accuracy() << std::endl;
                std::this_thread::sleep_for(std::chrono::milliseconds(22));
        }
}
