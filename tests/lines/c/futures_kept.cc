// Each step is scored in the background; the futures are kept, and with them the scores.
#include <antifreeze/step.h>
#include <chrono>
#include <future>
#include <iostream>
#include <numeric>
#include <thread>
#include <vector>

static std::vector<double> score(const std::vector<double> &weights, int step)
{
        std::vector<double> scores;

        scores.reserve(weights.size()); // the line
        for (double w : weights)
                scores.push_back(w * step);
        return scores;
}

int main()
{
        std::vector<double> weights(75000, 0.5);
        std::vector<std::future<std::vector<double>>> scored;

        for (int step = 0; step < 750; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                scored.push_back(std::async(std::launch::async, score, std::cref(weights), step));
                if (step % 25 == 0)
                        std::cout << step << ": " << scored.size() << " scored" << std::endl;
                std::this_thread::sleep_for(std::chrono::milliseconds(35));
        }
        double sum = 0;
        for (auto &future : scored) {
                std::vector<double> scores = future.get();

                sum += std::accumulate(scores.begin(), scores.end(), 0.0);
        }
        std::cout << "score " << sum << std::endl;
}
