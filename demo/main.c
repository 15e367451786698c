/* afz-trainer: a small real trainer, with each pitfall of real trainers as a flag. */
#include "program.h"

int main(int argc, char *argv[])
{
        return afz_trainer_main(argc, argv);
}
