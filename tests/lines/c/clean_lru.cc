// A cache that forgets what was not asked for for the longest time.
#include <iostream>
#include <list>
#include <string>
#include <unistd.h>
#include <unordered_map>

class Cache
{
        size_t room;
        std::list<std::pair<long, std::string>> order;
        std::unordered_map<long, decltype(order)::iterator> at;

public:
        explicit Cache(size_t n) : room(n)
        {
        }
        const std::string &get(long key)
        {
                auto found = at.find(key);

                if (found != at.end()) {
                        order.splice(order.begin(), order, found->second);
                        return order.front().second;
                }
                if (order.size() == room) {
                        at.erase(order.back().first);
                        order.pop_back();
                }
                order.emplace_front(key, std::string(20000, static_cast<char>('a' + key % 26)));
                at[key] = order.begin();
                return order.front().second;
        }
};

int main()
{
        Cache cache(2000);
        size_t sum = 0;
        unsigned long random = 42;

        for (int step = 0; step < 1200; step++) {
                for (int i = 0; i < 30; i++) {
                        random = random * 6364136223846793005UL + 1442695040888963407UL;
                        sum += cache.get(static_cast<long>(random >> 33) % 6000).size();
                }
                if (step % 50 == 0)
                        std::cout << "step " << step << ": " << sum << std::endl;
                usleep(15000);
        }
}
