// Results are gathered until there are enough for a file, written, and let go of.
#include <antifreeze/step.h>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

class Spill
{
        std::vector<std::string> pages;
        size_t enough;
        std::FILE *out = std::tmpfile();

      public:
        explicit Spill(size_t n) : enough(n)
        {
        }
        ~Spill()
        {
                std::fclose(out);
        }
        void add(std::string page)
        {
                pages.push_back(std::move(page));
                if (pages.size() == enough) {
                        std::rewind(out);
                        for (const std::string &p : pages)
                                std::fwrite(p.data(), 1, 1000, out);
                        std::vector<std::string>().swap(pages);
                }
        }
        size_t waiting() const
        {
                return pages.size();
        }
};

int main()
{
        Spill spill(1100);

        for (int step = 0; step < 850; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int i = 0; i < 5; i++)
                        spill.add(std::string(140000, static_cast<char>('a' + (step + i) % 26)));
                if (step % 25 == 0)
                        std::cout << step << ": " << spill.waiting() << " waiting" << std::endl;
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
}
