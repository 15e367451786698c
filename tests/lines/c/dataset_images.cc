// All images of an album are decoded when it is opened, though 16 are looked at in a step.
#include <antifreeze/step.h>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

class Album
{
        static constexpr size_t side = 160;
        std::vector<std::vector<uint8_t>> images;

      public:
        explicit Album(size_t count)
        {
                images.reserve(count);
                for (size_t n = 0; n < count; n++) {
                        images.emplace_back(side * side * 3); // the line
                        decode(images.back(), n);
                }
        }
        static void decode(std::vector<uint8_t> &image, size_t n)
        {
                for (size_t i = 0; i < image.size(); i++)
                        image[i] = static_cast<uint8_t>(i * n >> 7);
        }
        const std::vector<uint8_t> &operator[](size_t n) const
        {
                return images[n % images.size()];
        }
};

int main()
{
        Album album(2900);
        double mean = 0;

        for (size_t step = 0; step < 450; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (size_t i = 0; i < 16; i++)
                        for (uint8_t pixel : album[step * 16 + i])
                                mean += (pixel - mean) * 1e-5;
                if (step % 25 == 0)
                        std::cout << "step " << step << ": " << mean << std::endl;
                std::this_thread::sleep_for(std::chrono::milliseconds(30));
        }
}
