#include "sense.h"

const struct afz_sense *const afz_sense_table[] = {
        &afz_sense_host,    &afz_sense_vm,     &afz_sense_psi,  &afz_sense_cpu,
        &afz_sense_job,     &afz_sense_cgroup, &afz_sense_disk, &afz_sense_net,
        &afz_sense_thermal, &afz_sense_kmsg,   &afz_sense_gpu,
};

const unsigned afz_sense_count = sizeof afz_sense_table / sizeof afz_sense_table[0];
