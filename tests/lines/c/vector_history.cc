// A training history in vectors of vectors.
#include <iostream>
#include <unistd.h>
#include <vector>

using Weights = std::vector<float>;

static void descend(Weights &w)
{
        for (size_t i = 0; i < w.size(); i++)
                w[i] -= 0.01F * (w[i] - static_cast<float>(i % 11));
}

int main()
{
        Weights weights(60000, 1.0F);
        std::vector<Weights> history;

        history.reserve(4000);
        for (int step = 0; step < 1600; step++) {
                descend(weights);
                history.push_back(weights); // the line
                if (step % 25 == 0)
                        std::cout << "step " << step << ": " << weights[7] << std::endl;
                usleep(20000);
        }
}
