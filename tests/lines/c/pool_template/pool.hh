#pragma once
#include <vector>

// Blocks of N things; taken one by one, and given back for others to take.
template <class T, int N> class Pool
{
        std::vector<T *> blocks;
        std::vector<T *> unused;

        void grow()
        {
                T *block = new T[N]; // the line

                blocks.push_back(block);
                for (int i = 0; i < N; i++)
                        unused.push_back(block + i);
        }

public:
        T *take()
        {
                if (unused.empty())
                        grow();
                T *t = unused.back();
                unused.pop_back();
                return t;
        }

        void give(T *t)
        {
                unused.push_back(t);
        }
};
