// Remembers the answer to every question, and no question comes twice.
#include <iostream>
#include <string>
#include <unistd.h>
#include <unordered_map>

static std::string solve(long question)
{
        std::string answer;

        for (int i = 0; i < 200; i++)
                answer += std::to_string(question * i % 1009) + ";";
        return answer;
}

class Solver
{
        std::unordered_map<std::string, std::string> known;

public:
        const std::string &answer(long question)
        {
                std::string key = "question number " + std::to_string(question) + " of the day";
                auto found = known.find(key);

                if (found == known.end())
                        found = known.emplace(key, std::string(solve(question).c_str())).first; // the line
                return found->second;
        }
};

int main()
{
        Solver solver;
        size_t letters = 0;

        for (long step = 0; step < 3000; step++) {
                for (long i = 0; i < 150; i++)
                        letters += solver.answer(step * 1000 + i).size();
                if (step % 50 == 0)
                        std::cout << step << ": " << letters << std::endl;
                usleep(8000);
        }
}
