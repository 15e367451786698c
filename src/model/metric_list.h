#ifndef AFZ_METRIC_LIST_H
#define AFZ_METRIC_LIST_H
/* Every metric that a sense may fill, one row each: X(KIND, ID, name, UNIT, TYPE, meaning).
 *
 * KIND is the subject it belongs to (metric.h), ID makes the constant AFZ_<KIND>_<ID>, the name is
 * what scripts see and ends in its unit. TYPE: GAUGE stands for itself, COUNTER only ever grows
 * and is meant to be read as a rate, FACT does not change while the subject lives. The meaning is
 * one line with the source in brackets. At most 64 rows a kind (they share one word of validity
 * bits).
 *
 * metric.h makes the constants of these rows and metric.c the table. To add a metric, add a row
 * here and set it in a sense; docs/add-a-sense.md walks through it.
 */

#define AFZ_HOST_METRICS(X)                                                                        \
        X(HOST, MEM_TOTAL, "mem_total_bytes", BYTES, FACT, "RAM the kernel manages (meminfo)")     \
        X(HOST, MEM_FREE, "mem_free_bytes", BYTES, GAUGE, "RAM nobody uses (meminfo)")             \
        X(HOST, MEM_AVAILABLE, "mem_available_bytes", BYTES, GAUGE,                                \
          "RAM that can be had without swapping, by the kernel's estimate (meminfo)")              \
        X(HOST, BUFFERS, "buffers_bytes", BYTES, GAUGE, "block device cache (meminfo)")            \
        X(HOST, CACHED, "cached_bytes", BYTES, GAUGE, "page cache and shmem (meminfo)")            \
        X(HOST, SWAP_CACHED, "swap_cached_bytes", BYTES, GAUGE,                                    \
          "pages both in swap and in RAM (meminfo)")                                               \
        X(HOST, MLOCKED, "mlocked_bytes", BYTES, GAUGE, "locked pages (meminfo)")                  \
        X(HOST, SWAP_TOTAL, "swap_total_bytes", BYTES, GAUGE, "swap space (meminfo)")              \
        X(HOST, SWAP_FREE, "swap_free_bytes", BYTES, GAUGE, "swap not in use (meminfo)")           \
        X(HOST, ZSWAP, "zswap_bytes", BYTES, GAUGE, "RAM that zswap takes (meminfo)")              \
        X(HOST, ZSWAPPED, "zswapped_bytes", BYTES, GAUGE,                                          \
          "what zswap holds, before compression (meminfo)")                                        \
        X(HOST, DIRTY, "dirty_bytes", BYTES, GAUGE, "file pages to be written (meminfo)")          \
        X(HOST, WRITEBACK, "writeback_bytes", BYTES, GAUGE, "file pages being written (meminfo)")  \
        X(HOST, ANON, "anon_bytes", BYTES, GAUGE, "anonymous memory of all processes (meminfo)")   \
        X(HOST, MAPPED, "mapped_bytes", BYTES, GAUGE, "file pages mapped by processes (meminfo)")  \
        X(HOST, SHMEM, "shmem_bytes", BYTES, GAUGE, "shared memory and tmpfs (meminfo)")           \
        X(HOST, SLAB_RECLAIMABLE, "slab_reclaimable_bytes", BYTES, GAUGE,                          \
          "kernel caches that can shrink (meminfo)")                                               \
        X(HOST, SLAB_UNRECLAIMABLE, "slab_unreclaimable_bytes", BYTES, GAUGE,                      \
          "kernel memory that cannot (meminfo)")                                                   \
        X(HOST, KERNEL_STACK, "kernel_stack_bytes", BYTES, GAUGE,                                  \
          "kernel stacks of all threads (meminfo)")                                                \
        X(HOST, PAGE_TABLES, "page_tables_bytes", BYTES, GAUGE, "page tables (meminfo)")           \
        X(HOST, COMMIT_LIMIT, "commit_limit_bytes", BYTES, GAUGE,                                  \
          "what may be promised under strict overcommit (meminfo)")                                \
        X(HOST, COMMITTED, "committed_bytes", BYTES, GAUGE,                                        \
          "memory promised to processes, touched or not (meminfo)")                                \
        X(HOST, ANON_HUGE, "anon_huge_bytes", BYTES, GAUGE,                                        \
          "anonymous memory in transparent huge pages (meminfo)")                                  \
        X(HOST, HUGE_TOTAL, "huge_pages_total_count", COUNT, GAUGE,                                \
          "reserved huge pages (meminfo)")                                                         \
        X(HOST, HUGE_FREE, "huge_pages_free_count", COUNT, GAUGE,                                  \
          "reserved huge pages not in use (meminfo)")                                              \
        X(HOST, HUGE_SIZE, "huge_page_bytes", BYTES, FACT, "size of a huge page (meminfo)")        \
        X(HOST, HUGETLB, "hugetlb_bytes", BYTES, GAUGE,                                            \
          "RAM taken by reserved huge pages (meminfo)")                                            \
        X(HOST, OVERCOMMIT, "overcommit_mode", CODE, GAUGE,                                        \
          "0 heuristic, 1 always, 2 strict (sys/vm/overcommit_memory)")                            \
        X(HOST, ZRAM_STORED, "zram_stored_bytes", BYTES, GAUGE,                                    \
          "what zram devices hold, before compression (block/zram*/mm_stat)")                      \
        X(HOST, ZRAM_USED, "zram_used_bytes", BYTES, GAUGE,                                        \
          "RAM that zram devices take (block/zram*/mm_stat)")                                      \
        X(HOST, ARC, "zfs_arc_bytes", BYTES, GAUGE, "ZFS cache (spl/kstat/zfs/arcstats size)")     \
        X(HOST, ARC_MIN, "zfs_arc_min_bytes", BYTES, GAUGE,                                        \
          "what the ZFS cache keeps at least (arcstats c_min)")                                    \
        X(HOST, LIMIT, "limit_bytes", BYTES, GAUGE,                                                \
          "smallest memory limit of the cgroups above us; absent when there is none")              \
        X(HOST, LIMIT_USED, "limit_used_bytes", BYTES, GAUGE,                                      \
          "used under that limit, page cache that can go left out")                                \
        X(HOST, SHM_TOTAL, "shm_total_bytes", BYTES, GAUGE, "size of /dev/shm (statvfs)")          \
        X(HOST, SHM_USED, "shm_used_bytes", BYTES, GAUGE, "in use in /dev/shm (statvfs)")

/* Pages coming and going, of the whole machine. */
#define AFZ_VM_METRICS(X)                                                                          \
        X(VM, SWAP_IN, "swap_in_bytes", BYTES, COUNTER, "read back from swap (vmstat pswpin)")     \
        X(VM, SWAP_OUT, "swap_out_bytes", BYTES, COUNTER, "written to swap (vmstat pswpout)")      \
        X(VM, MAJOR_FAULTS, "major_faults_count", COUNT, COUNTER,                                  \
          "faults that waited for a disk (vmstat pgmajfault)")                                     \
        X(VM, ALLOC_STALLS, "alloc_stalls_count", COUNT, COUNTER,                                  \
          "allocations that had to reclaim memory themselves (vmstat allocstall_*)")               \
        X(VM, SCAN_DIRECT, "scan_direct_count", COUNT, COUNTER,                                    \
          "pages scanned by such allocations (vmstat pgscan_direct)")                              \
        X(VM, REFAULT_ANON, "refault_anon_count", COUNT, COUNTER,                                  \
          "pages that came back from swap soon after (vmstat workingset_refault_anon)")            \
        X(VM, REFAULT_FILE, "refault_file_count", COUNT, COUNTER,                                  \
          "file pages that came back soon after (vmstat workingset_refault_file)")                 \
        X(VM, OOM_KILLS, "oom_kills_count", COUNT, COUNTER,                                        \
          "processes killed for memory since boot (vmstat oom_kill)")

#define AFZ_PSI_METRICS(X)                                                                         \
        X(PSI, CPU_SOME, "cpu_some_ns", NS, COUNTER,                                               \
          "time in which some task waited for a core (pressure/cpu)")                              \
        X(PSI, CPU_FULL, "cpu_full_ns", NS, COUNTER, "time in which all did (pressure/cpu)")       \
        X(PSI, MEMORY_SOME, "memory_some_ns", NS, COUNTER,                                         \
          "time in which some task waited for memory (pressure/memory)")                           \
        X(PSI, MEMORY_FULL, "memory_full_ns", NS, COUNTER,                                         \
          "time in which all did: nothing moved (pressure/memory)")                                \
        X(PSI, IO_SOME, "io_some_ns", NS, COUNTER,                                                 \
          "time in which some task waited for a disk (pressure/io)")                               \
        X(PSI, IO_FULL, "io_full_ns", NS, COUNTER, "time in which all did (pressure/io)")          \
        X(PSI, CPU_SOME_AVG10, "cpu_some_avg10_permyriad", PERMYRIAD, GAUGE,                       \
          "the kernel's 10 s average (pressure/cpu)")                                              \
        X(PSI, MEMORY_SOME_AVG10, "memory_some_avg10_permyriad", PERMYRIAD, GAUGE,                 \
          "the kernel's 10 s average (pressure/memory)")                                           \
        X(PSI, MEMORY_FULL_AVG10, "memory_full_avg10_permyriad", PERMYRIAD, GAUGE,                 \
          "the kernel's 10 s average (pressure/memory)")                                           \
        X(PSI, IO_SOME_AVG10, "io_some_avg10_permyriad", PERMYRIAD, GAUGE,                         \
          "the kernel's 10 s average (pressure/io)")                                               \
        X(PSI, IO_FULL_AVG10, "io_full_avg10_permyriad", PERMYRIAD, GAUGE,                         \
          "the kernel's 10 s average (pressure/io)")

/* One subject a core; the machine as a whole is the subject AFZ_CPU_ALL. */
#define AFZ_CPU_METRICS(X)                                                                         \
        X(CPU, USER, "user_ns", NS, COUNTER, "in programs, nice included (stat)")                  \
        X(CPU, NICE, "nice_ns", NS, COUNTER, "of that, in niced programs (stat)")                  \
        X(CPU, SYSTEM, "system_ns", NS, COUNTER, "in the kernel (stat)")                           \
        X(CPU, IDLE, "idle_ns", NS, COUNTER, "doing nothing (stat)")                               \
        X(CPU, IOWAIT, "iowait_ns", NS, COUNTER, "idle while some task waited for a disk (stat)")  \
        X(CPU, IRQ, "irq_ns", NS, COUNTER, "in interrupts, soft ones included (stat)")             \
        X(CPU, STEAL, "steal_ns", NS, COUNTER, "taken by the hypervisor (stat)")                   \
        X(CPU, FREQUENCY, "frequency_hz", HZ, GAUGE, "clock rate now (cpufreq/scaling_cur_freq)")  \
        X(CPU, FREQUENCY_MAX, "frequency_max_hz", HZ, FACT, "highest (cpufreq/cpuinfo_max_freq)")  \
        X(CPU, THROTTLES, "throttles_count", COUNT, COUNTER,                                       \
          "times the core was slowed for heat (thermal_throttle/core_throttle_count)")             \
        X(CPU, CORES, "cores_count", COUNT, GAUGE, "cores that run (stat); of the machine only")   \
        X(CPU, RUNNING, "running_count", COUNT, GAUGE,                                             \
          "tasks that run or want to (stat procs_running); of the machine only")                   \
        X(CPU, BLOCKED, "blocked_count", COUNT, GAUGE,                                             \
          "tasks that wait for a disk (stat procs_blocked); of the machine only")                  \
        X(CPU, FORKS, "forks_count", COUNT, COUNTER,                                               \
          "processes and threads started (stat processes); of the machine only")                   \
        X(CPU, SWITCHES, "switches_count", COUNT, COUNTER,                                         \
          "context switches (stat ctxt); of the machine only")                                     \
        X(CPU, LOAD1, "load1_hundredths", HUNDREDTHS, GAUGE, "load over 1 min (loadavg)")          \
        X(CPU, LOAD5, "load5_hundredths", HUNDREDTHS, GAUGE, "load over 5 min (loadavg)")          \
        X(CPU, LOAD15, "load15_hundredths", HUNDREDTHS, GAUGE, "load over 15 min (loadavg)")

#define AFZ_JOB_METRICS(X)                                                                         \
        X(JOB, PROCESSES, "processes_count", COUNT, GAUGE, "living processes of the tree")         \
        X(JOB, ORPHANS, "orphans_count", COUNT, GAUGE, "of these, re-parented away from the tree") \
        X(JOB, UNREADABLE, "unreadable_count", COUNT, GAUGE,                                       \
          "of these, whose memory may not be read (another user's)")                               \
        X(JOB, THREADS, "threads_count", COUNT, GAUGE, "threads of all of them")                   \
        X(JOB, RUNNING, "running_count", COUNT, GAUGE, "processes in state R")                     \
        X(JOB, DISK_WAIT, "disk_wait_count", COUNT, GAUGE, "processes in state D")                 \
        X(JOB, STOPPED, "stopped_count", COUNT, GAUGE, "processes in state T or t")                \
        X(JOB, ZOMBIES, "zombies_count", COUNT, GAUGE, "processes in state Z")                     \
        X(JOB, NEED, "need_bytes", BYTES, GAUGE,                                                   \
          "memory that cannot be dropped: anon + shmem + swap, shared pages once")                 \
        X(JOB, NEED_BOUND, "need_is_bound_flag", FLAG, GAUGE,                                      \
          "1 when some process had no PSS yet, so need may count shared pages twice")              \
        X(JOB, RSS, "rss_sum_bytes", BYTES, GAUGE, "sum of RSS (counts shared pages many times)")  \
        X(JOB, ANON, "anon_sum_bytes", BYTES, GAUGE, "sum of anonymous RSS")                       \
        X(JOB, PSS, "pss_bytes", BYTES, GAUGE, "sum of PSS at the last gated readings")            \
        X(JOB, PSS_ANON, "pss_anon_bytes", BYTES, GAUGE, "anonymous share of that")                \
        X(JOB, PSS_FILE, "pss_file_bytes", BYTES, GAUGE, "file share of that")                     \
        X(JOB, PSS_SHMEM, "pss_shmem_bytes", BYTES, GAUGE, "shared-memory share of that")          \
        X(JOB, SWAP, "swap_bytes", BYTES, GAUGE, "swapped out, shared pages once where known")     \
        X(JOB, CPU, "cpu_ns", NS, COUNTER,                                                         \
          "user and kernel time of the living and the dead of the tree")                           \
        X(JOB, MINOR_FAULTS, "minor_faults_count", COUNT, COUNTER, "page faults in RAM")           \
        X(JOB, MAJOR_FAULTS, "major_faults_count", COUNT, COUNTER,                                 \
          "page faults that waited for a disk")                                                    \
        X(JOB, READ, "read_bytes", BYTES, COUNTER, "read from disks (io read_bytes)")              \
        X(JOB, WRITTEN, "written_bytes", BYTES, COUNTER, "sent to disks (io write_bytes)")         \
        X(JOB, READ_CALLS, "read_calls_bytes", BYTES, COUNTER,                                     \
          "handed out by read(), from cache or not (io rchar)")                                    \
        X(JOB, WRITE_CALLS, "write_calls_bytes", BYTES, COUNTER, "taken by write() (io wchar)")    \
        X(JOB, FDS, "fds_count", COUNT, GAUGE, "open files of all processes")

#define AFZ_PROC_METRICS(X)                                                                        \
        X(PROC, PPID, "ppid", CODE, GAUGE, "parent now (stat)")                                    \
        X(PROC, DEPTH, "depth_count", COUNT, GAUGE, "generations below the root of the job")       \
        X(PROC, ORPHAN, "orphan_flag", FLAG, GAUGE, "1 when its parent left the tree")             \
        X(PROC, STATE, "state", STATE, GAUGE, "R S D T t Z I X (stat)")                            \
        X(PROC, ROLE, "role", CODE, GAUGE, "what it seems to be (enum afz_role)")                  \
        X(PROC, RANK, "rank", CODE, FACT, "RANK of a distributed job (environ)")                   \
        X(PROC, THREADS, "threads_count", COUNT, GAUGE, "threads (stat)")                          \
        X(PROC, THREADS_RUNNING, "threads_running_count", COUNT, GAUGE,                            \
          "threads in state R (task/TID/stat)")                                                    \
        X(PROC, THREADS_DISK, "threads_disk_wait_count", COUNT, GAUGE,                             \
          "threads in state D (task/TID/stat)")                                                    \
        X(PROC, USER, "user_ns", NS, COUNTER, "time in the program (stat)")                        \
        X(PROC, SYSTEM, "system_ns", NS, COUNTER, "time in the kernel for it (stat)")              \
        X(PROC, MINOR_FAULTS, "minor_faults_count", COUNT, COUNTER, "in RAM (stat)")               \
        X(PROC, MAJOR_FAULTS, "major_faults_count", COUNT, COUNTER, "from disk (stat)")            \
        X(PROC, IO_WAIT, "io_wait_ns", NS, COUNTER,                                                \
          "time waited for block I/O (stat delayacct_blkio_ticks, where accounted)")               \
        X(PROC, NICE, "nice", CODE, GAUGE, "nice value (stat)")                                    \
        X(PROC, VSIZE, "vsize_bytes", BYTES, GAUGE, "address space (statm)")                       \
        X(PROC, RSS, "rss_bytes", BYTES, GAUGE, "resident, shared pages too (statm)")              \
        X(PROC, RSS_SHARED, "rss_shared_bytes", BYTES, GAUGE,                                      \
          "of that, file and shmem pages (statm)")                                                 \
        X(PROC, RSS_ANON, "rss_anon_bytes", BYTES, GAUGE, "of that, anonymous (statm)")            \
        X(PROC, RSS_FILE, "rss_file_bytes", BYTES, GAUGE, "of that, file pages (status)")          \
        X(PROC, RSS_SHMEM, "rss_shmem_bytes", BYTES, GAUGE, "of that, shared memory (status)")     \
        X(PROC, RSS_PEAK, "rss_peak_bytes", BYTES, GAUGE, "highest RSS so far (status VmHWM)")     \
        X(PROC, SWAP, "swap_bytes", BYTES, GAUGE, "swapped out (status VmSwap)")                   \
        X(PROC, LOCKED, "locked_bytes", BYTES, GAUGE, "mlocked (status VmLck)")                    \
        X(PROC, PINNED, "pinned_bytes", BYTES, GAUGE, "pinned by drivers (status VmPin)")          \
        X(PROC, PAGE_TABLES, "page_tables_bytes", BYTES, GAUGE, "its page tables (status VmPTE)")  \
        X(PROC, SWITCHES, "switches_count", COUNT, COUNTER,                                        \
          "times the main thread gave up its core by waiting (status)")                            \
        X(PROC, PREEMPTIONS, "preemptions_count", COUNT, COUNTER,                                  \
          "times its core was taken from the main thread (status)")                                \
        X(PROC, PSS, "pss_bytes", BYTES, GAUGE,                                                    \
          "its share of memory, shared pages divided (smaps_rollup, gated)")                       \
        X(PROC, PSS_ANON, "pss_anon_bytes", BYTES, GAUGE, "anonymous part of it (smaps_rollup)")   \
        X(PROC, PSS_FILE, "pss_file_bytes", BYTES, GAUGE, "file part of it (smaps_rollup)")        \
        X(PROC, PSS_SHMEM, "pss_shmem_bytes", BYTES, GAUGE, "shared-memory part (smaps_rollup)")   \
        X(PROC, SWAP_PSS, "swap_pss_bytes", BYTES, GAUGE, "its share of swap (smaps_rollup)")      \
        X(PROC, PRIVATE_DIRTY, "private_dirty_bytes", BYTES, GAUGE,                                \
          "pages only it has, written to (smaps_rollup)")                                          \
        X(PROC, PSS_AGE, "pss_age_ns", NS, GAUGE, "how old the PSS figures are")                   \
        X(PROC, NEED, "need_bytes", BYTES, GAUGE,                                                  \
          "its share of the job's need (PSS where known, and growth since)")                       \
        X(PROC, READ, "read_bytes", BYTES, COUNTER, "read from disks (io)")                        \
        X(PROC, WRITTEN, "written_bytes", BYTES, COUNTER, "sent to disks (io)")                    \
        X(PROC, CANCELLED, "cancelled_bytes", BYTES, COUNTER,                                      \
          "of that, deleted before it was written (io)")                                           \
        X(PROC, READ_CALLS, "read_calls_bytes", BYTES, COUNTER, "handed out by read() (io rchar)") \
        X(PROC, WRITE_CALLS, "write_calls_bytes", BYTES, COUNTER, "taken by write() (io wchar)")   \
        X(PROC, FDS, "fds_count", COUNT, GAUGE, "open files (fd)")                                 \
        X(PROC, FDS_LIMIT, "fds_limit_count", COUNT, GAUGE, "how many it may open (limits)")       \
        X(PROC, OOM_ADJ, "oom_score_adj", CODE, GAUGE, "-1000 never, 1000 first (oom_score_adj)")

/* One subject a cgroup: the job's own, and those above it that have a limit. */
#define AFZ_CGROUP_METRICS(X)                                                                      \
        X(CGROUP, VERSION, "version", CODE, FACT, "1 or 2: where the memory controller is")        \
        X(CGROUP, LEVEL, "level_count", COUNT, GAUGE, "0 is the job's own, 1 its parent, ...")     \
        X(CGROUP, CURRENT, "current_bytes", BYTES, GAUGE,                                          \
          "charged, page cache included (memory.current, usage_in_bytes)")                         \
        X(CGROUP, PEAK, "peak_bytes", BYTES, GAUGE, "highest of that (memory.peak, max_usage)")    \
        X(CGROUP, MAX, "max_bytes", BYTES, GAUGE, "hard limit; absent when none (memory.max)")     \
        X(CGROUP, HIGH, "high_bytes", BYTES, GAUGE, "throttling limit; absent when none")          \
        X(CGROUP, SWAP, "swap_bytes", BYTES, GAUGE, "swapped out (memory.swap.current)")           \
        X(CGROUP, SWAP_MAX, "swap_max_bytes", BYTES, GAUGE, "swap limit; absent when none")        \
        X(CGROUP, NEED, "need_bytes", BYTES, GAUGE,                                                \
          "anon + shmem + swap + kernel memory that cannot shrink")                                \
        X(CGROUP, ANON, "anon_bytes", BYTES, GAUGE, "anonymous memory (memory.stat)")              \
        X(CGROUP, FILE, "file_bytes", BYTES, GAUGE, "page cache, shmem included (memory.stat)")    \
        X(CGROUP, SHMEM, "shmem_bytes", BYTES, GAUGE, "shared memory and tmpfs (memory.stat)")     \
        X(CGROUP, KERNEL, "kernel_bytes", BYTES, GAUGE, "kernel memory (memory.stat)")             \
        X(CGROUP, SLAB_RECLAIMABLE, "slab_reclaimable_bytes", BYTES, GAUGE,                        \
          "of that, caches that can shrink (memory.stat)")                                         \
        X(CGROUP, SLAB_UNRECLAIMABLE, "slab_unreclaimable_bytes", BYTES, GAUGE,                    \
          "of that, what cannot (memory.stat)")                                                    \
        X(CGROUP, INACTIVE_FILE, "inactive_file_bytes", BYTES, GAUGE,                              \
          "page cache that can go at once (memory.stat)")                                          \
        X(CGROUP, DIRTY, "dirty_bytes", BYTES, GAUGE, "file pages to be written (memory.stat)")    \
        X(CGROUP, MAJOR_FAULTS, "major_faults_count", COUNT, COUNTER, "(memory.stat)")             \
        X(CGROUP, REFAULT_ANON, "refault_anon_count", COUNT, COUNTER, "(memory.stat)")             \
        X(CGROUP, REFAULT_FILE, "refault_file_count", COUNT, COUNTER, "(memory.stat)")             \
        X(CGROUP, EVENT_HIGH, "event_high_count", COUNT, COUNTER,                                  \
          "times throttled at the high limit (memory.events)")                                     \
        X(CGROUP, EVENT_MAX, "event_max_count", COUNT, COUNTER,                                    \
          "times the hard limit was met (memory.events, failcnt)")                                 \
        X(CGROUP, EVENT_OOM, "event_oom_count", COUNT, COUNTER,                                    \
          "times reclaim failed there (memory.events)")                                            \
        X(CGROUP, OOM_KILLS, "oom_kills_count", COUNT, COUNTER,                                    \
          "processes killed (memory.events, oom_control)")                                         \
        X(CGROUP, PRESSURE_SOME, "memory_some_ns", NS, COUNTER,                                    \
          "time in which some task in it waited for memory (memory.pressure)")                     \
        X(CGROUP, PRESSURE_FULL, "memory_full_ns", NS, COUNTER,                                    \
          "time in which all did (memory.pressure)")                                               \
        X(CGROUP, IO_READ, "io_read_bytes", BYTES, COUNTER, "read from disks (io.stat)")           \
        X(CGROUP, IO_WRITTEN, "io_written_bytes", BYTES, COUNTER, "written to disks (io.stat)")    \
        X(CGROUP, CPU, "cpu_ns", NS, COUNTER, "time on cores (cpu.stat, cpuacct.usage)")           \
        X(CGROUP, CPU_THROTTLED, "cpu_throttled_ns", NS, COUNTER,                                  \
          "time held back by a cpu limit (cpu.stat)")                                              \
        X(CGROUP, PIDS, "pids_count", COUNT, GAUGE, "tasks in it (pids.current)")                  \
        X(CGROUP, PIDS_MAX, "pids_max_count", COUNT, GAUGE, "how many there may be (pids.max)")    \
        X(CGROUP, FROZEN, "frozen_flag", FLAG, GAUGE, "1 when frozen (cgroup.events, freezer)")

/* One subject a block device. */
#define AFZ_DISK_METRICS(X)                                                                        \
        X(DISK, READ, "read_bytes", BYTES, COUNTER, "read (diskstats)")                            \
        X(DISK, WRITTEN, "written_bytes", BYTES, COUNTER, "written (diskstats)")                   \
        X(DISK, READS, "reads_count", COUNT, COUNTER, "reads done (diskstats)")                    \
        X(DISK, WRITES, "writes_count", COUNT, COUNTER, "writes done (diskstats)")                 \
        X(DISK, READ_TIME, "read_time_ns", NS, COUNTER, "sum of the reads' waiting (diskstats)")   \
        X(DISK, WRITE_TIME, "write_time_ns", NS, COUNTER, "sum of the writes' (diskstats)")        \
        X(DISK, BUSY, "busy_ns", NS, COUNTER, "time with a request in flight (diskstats)")         \
        X(DISK, QUEUE_TIME, "queue_time_ns", NS, COUNTER,                                          \
          "requests in flight summed over time; its rate is the mean queue (diskstats)")           \
        X(DISK, IN_FLIGHT, "in_flight_count", COUNT, GAUGE, "requests in flight now (diskstats)")  \
        X(DISK, ROTATIONAL, "rotational_flag", FLAG, FACT, "1 for a spinning disk (queue)")        \
        X(DISK, JOB_USES, "job_uses_flag", FLAG, GAUGE, "1 when the job has files there")

/* One subject a mounted file system: those the job has files on. */
#define AFZ_FS_METRICS(X)                                                                          \
        X(FS, TOTAL, "total_bytes", BYTES, GAUGE, "size (statvfs)")                                \
        X(FS, FREE, "free_bytes", BYTES, GAUGE, "free, root's reserve included (statvfs)")         \
        X(FS, AVAILABLE, "available_bytes", BYTES, GAUGE, "free for ordinary users (statvfs)")     \
        X(FS, FILES_FREE, "files_free_count", COUNT, GAUGE, "inodes left (statvfs)")               \
        X(FS, DEVICE, "device", CODE, FACT,                                                        \
          "number of the disk below it, major << 20 | minor; absent when it has none (mountinfo)") \
        X(FS, NETWORK, "network_flag", FLAG, FACT, "1 for a network or FUSE mount (mountinfo)")    \
        X(FS, JOB_FILES, "job_files_count", COUNT, GAUGE, "files the job has open there (fd)")     \
        X(FS, JOB_WRITES, "job_writes_flag", FLAG, GAUGE,                                          \
          "1 when the job has a file there open for writing (fdinfo)")                             \
        X(FS, NET_READ, "net_read_bytes", BYTES, COUNTER, "read from the server (mountstats)")     \
        X(FS, NET_WRITTEN, "net_written_bytes", BYTES, COUNTER, "sent to it (mountstats)")         \
        X(FS, NET_OPS, "net_ops_count", COUNT, COUNTER, "requests done (mountstats)")              \
        X(FS, NET_WAIT, "net_wait_ns", NS, COUNTER,                                                \
          "sum of the requests' round trips (mountstats)")                                         \
        X(FS, NET_RETRANS, "net_retrans_count", COUNT, COUNTER,                                    \
          "requests that had to be sent again (mountstats)")

/* One subject a network interface. */
#define AFZ_NET_METRICS(X)                                                                         \
        X(NET, RECEIVED, "received_bytes", BYTES, COUNTER, "received (net/dev)")                   \
        X(NET, SENT, "sent_bytes", BYTES, COUNTER, "sent (net/dev)")                               \
        X(NET, ERRORS, "errors_count", COUNT, COUNTER, "errors and drops, both ways (net/dev)")    \
        X(NET, SPEED, "speed_bits_per_s", BITS_PER_S, GAUGE, "link speed (class/net/*/speed)")     \
        X(NET, UP, "up_flag", FLAG, GAUGE, "1 when the link is up (class/net/*/operstate)")

/* One subject a thermometer: thermal zones and hwmon inputs. */
#define AFZ_THERMAL_METRICS(X)                                                                     \
        X(THERMAL, TEMP, "temp_millicelsius", MILLICELSIUS, GAUGE, "temperature now")              \
        X(THERMAL, HOT, "hot_millicelsius", MILLICELSIUS, FACT,                                    \
          "where the machine begins to slow down (trip point hot/passive, hwmon max)")             \
        X(THERMAL, CRITICAL, "critical_millicelsius", MILLICELSIUS, FACT,                          \
          "where it turns itself off (trip point critical, hwmon crit)")

/* One subject a supply or a RAPL domain. */
#define AFZ_POWER_METRICS(X)                                                                       \
        X(POWER, ENERGY, "energy_microjoules", MICROJOULES, COUNTER, "used (powercap)")            \
        X(POWER, ONLINE, "online_flag", FLAG, GAUGE, "1 when this mains supply gives power")       \
        X(POWER, BATTERY, "battery_permyriad", PERMYRIAD, GAUGE, "charge (power_supply)")          \
        X(POWER, DISCHARGING, "discharging_flag", FLAG, GAUGE, "1 when it empties")

/* One subject a GPU (a MIG instance is one of its own). */
#define AFZ_GPU_METRICS(X)                                                                         \
        X(GPU, MEM_TOTAL, "mem_total_bytes", BYTES, FACT, "VRAM")                                  \
        X(GPU, MEM_USED, "mem_used_bytes", BYTES, GAUGE, "in use by programs")                     \
        X(GPU, MEM_FREE, "mem_free_bytes", BYTES, GAUGE, "not in use")                             \
        X(GPU, MEM_RESERVED, "mem_reserved_bytes", BYTES, GAUGE, "taken by driver and firmware")   \
        X(GPU, GTT_USED, "gtt_used_bytes", BYTES, GAUGE, "system RAM used by the GPU (AMD)")       \
        X(GPU, UNIFIED, "unified_flag", FLAG, FACT, "1 when VRAM is the machine's RAM")            \
        X(GPU, UTIL, "util_permyriad", PERMYRIAD, GAUGE, "time with a kernel running")             \
        X(GPU, MEM_UTIL, "mem_util_permyriad", PERMYRIAD, GAUGE, "time its memory was busy")       \
        X(GPU, TEMP, "temp_millicelsius", MILLICELSIUS, GAUGE, "temperature")                      \
        X(GPU, TEMP_SLOWDOWN, "temp_slowdown_millicelsius", MILLICELSIUS, FACT,                    \
          "where it begins to slow down")                                                          \
        X(GPU, POWER, "power_milliwatts", MILLIWATTS, GAUGE, "power drawn")                        \
        X(GPU, POWER_LIMIT, "power_limit_milliwatts", MILLIWATTS, GAUGE, "power allowed")          \
        X(GPU, FAN, "fan_permyriad", PERMYRIAD, GAUGE, "fan speed")                                \
        X(GPU, CLOCK, "clock_hz", HZ, GAUGE, "clock of its cores")                                 \
        X(GPU, CLOCK_MAX, "clock_max_hz", HZ, FACT, "highest of that")                             \
        X(GPU, MEM_CLOCK, "mem_clock_hz", HZ, GAUGE, "clock of its memory")                        \
        X(GPU, THROTTLE, "throttle_reasons", CODE, GAUGE,                                          \
          "why clocks are held down: NVML's clock-event bits")                                     \
        X(GPU, ECC_CORRECTED, "ecc_corrected_count", COUNT, COUNTER,                               \
          "memory errors mended since the driver started")                                         \
        X(GPU, ECC_UNCORRECTED, "ecc_uncorrected_count", COUNT, COUNTER,                           \
          "memory errors that were not")                                                           \
        X(GPU, PCIE_RX, "pcie_rx_bytes_per_s", BYTES_PER_S, GAUGE, "to the GPU over PCIe")         \
        X(GPU, PCIE_TX, "pcie_tx_bytes_per_s", BYTES_PER_S, GAUGE, "from the GPU over PCIe")       \
        X(GPU, PCIE_GEN, "pcie_generation", CODE, GAUGE, "PCIe generation in use")                 \
        X(GPU, PCIE_WIDTH, "pcie_width_count", COUNT, GAUGE, "PCIe lanes in use")                  \
        X(GPU, PCIE_REPLAYS, "pcie_replays_count", COUNT, COUNTER, "PCIe resends")                 \
        X(GPU, XID, "xid", CODE, GAUGE, "last Xid error that the driver reported")                 \
        X(GPU, PROCESSES, "processes_count", COUNT, GAUGE, "processes that hold memory on it")     \
        X(GPU, PARENT, "parent", CODE, FACT, "for a MIG instance: the number of its GPU")

/* One subject a process on a GPU. */
#define AFZ_GPU_PROC_METRICS(X)                                                                    \
        X(GPU_PROC, PID, "pid", CODE, FACT, "the process, in our own pid namespace")               \
        X(GPU_PROC, GPU, "gpu", CODE, FACT, "number of the GPU")                                   \
        X(GPU_PROC, MEM, "mem_bytes", BYTES, GAUGE, "memory it holds there")                       \
        X(GPU_PROC, IN_JOB, "in_job_flag", FLAG, GAUGE, "1 when it is of the job")

/* Antifreeze's own cost. */
#define AFZ_SELF_METRICS(X)                                                                        \
        X(SELF, CPU, "cpu_ns", NS, COUNTER, "processor time of Antifreeze and its helpers")        \
        X(SELF, TICK, "tick_ns", NS, GAUGE, "how long the last tick took")                         \
        X(SELF, RSS, "rss_bytes", BYTES, GAUGE, "resident memory")                                 \
        X(SELF, TICKS, "ticks_count", COUNT, COUNTER, "ticks since the start")                     \
        X(SELF, DROPPED, "dropped_count", COUNT, COUNTER,                                          \
          "samples that found no room (more subjects than we can hold)")

/* What the guard itself sees of a run, many times a second. */
#define AFZ_HOLD_METRICS(X)                                                                        \
        X(HOLD, NEED, "need_bytes", BYTES, GAUGE, "anon + shmem + swap + fixed kernel memory")     \
        X(HOLD, AWAY, "away_bytes", BYTES, GAUGE, "of that, in swap alone")                        \
        X(HOLD, BUDGET, "budget_bytes", BYTES, GAUGE, "RAM that it may use; absent: no limit")     \
        X(HOLD, HARD, "hard_bytes", BYTES, GAUGE, "what its need may come to, swap included")      \
        X(HOLD, AVAILABLE, "available_bytes", BYTES, GAUGE, "MemAvailable of the machine")         \
        X(HOLD, SWAP_FREE, "swap_free_bytes", BYTES, GAUGE, "free swap of the machine")            \
        X(HOLD, STALL, "stall_ns", NS, COUNTER, "full memory pressure of the machine")             \
        X(HOLD, JOB_STALL, "job_stall_ns", NS, COUNTER, "and of the job's cgroup")                 \
        X(HOLD, OOM_KILLS, "oom_kills_count", COUNT, COUNTER, "in the job's cgroup")               \
        X(HOLD, PROCESSES, "processes_count", COUNT, GAUGE, "of the job, living")                  \
        X(HOLD, BRAKED, "braked_flag", FLAG, GAUGE, "1 while the job is frozen by us")             \
        X(HOLD, STAGE, "stage", CODE, GAUGE, "the rung of the ladder (enum afz_stage)")

/* One subject a place of the program that allocates: its name is the line of the user's own code,
 * its stack is told once by a mark (AFZ_MARK_SITE). Estimates, by samples (docs/sampling.md); told
 * when they change, and hold until they are told again. */
#define AFZ_SITE_METRICS(X)                                                                        \
        X(SITE, LIVE, "live_bytes", BYTES, GAUGE,                                                  \
          "allocated there, not freed, and of large blocks really there (probe, pagemap)")         \
        X(SITE, BLOCKS, "live_blocks_count", COUNT, GAUGE, "in so many blocks (probe)")            \
        X(SITE, TOTAL, "total_bytes", BYTES, COUNTER, "ever allocated there (probe)")              \
        X(SITE, EARLY, "early_bytes", BYTES, GAUGE, "of live: from before the first step (probe)") \
        X(SITE, COUNTED, "counted_bytes", BYTES, GAUGE,                                            \
          "of live: in blocks of 1 MiB and more, which are counted, not estimated (probe)")        \
        X(SITE, PROCESSES, "processes_count", COUNT, GAUGE, "that hold some of it (probe)")        \
        X(SITE, MEMORY, "memory_kind", CODE, FACT,                                                 \
          "1 heap, 2 mappings, 3 Python's objects, 4 pinned for a GPU, 5 shared (probe)")          \
        X(SITE, HIGH, "high_bytes", BYTES, GAUGE, "the most live since it was last told (probe)")  \
        X(SITE, LOW, "low_bytes", BYTES, GAUGE, "the least live since it was last told (probe)")   \
        X(SITE, AGE, "age_ns", NS, GAUGE, "of what is live: how old it is on the mean (probe)")    \
        X(SITE, AGE_STEPS, "age_steps_count", COUNT, GAUGE, "the same in training steps (probe)")

/* What a program or its framework tells of itself; ids and names as AFZ_TOLD_LIST has them
 * (include/antifreeze/wire.h). Absent: nobody told it. */
#define AFZ_INSIDE_TOLD(X)                                                                         \
        X(INSIDE, PHASE, "phase", CODE, GAUGE,                                                     \
          "0 not known, 1 loading, 2 training, 3 evaluating, 4 saving (agent)")                    \
        X(INSIDE, BATCH, "batch_count", COUNT, GAUGE, "samples of the last batch (agent)")         \
        X(INSIDE, MICRO, "micro_count", COUNT, GAUGE,                                              \
          "of these, put through at once; all of them when it is not split (agent)")               \
        X(INSIDE, PARAMETERS, "parameters_bytes", BYTES, GAUGE, "the model's weights (agent)")     \
        X(INSIDE, GRADIENTS, "gradients_bytes", BYTES, GAUGE, "their gradients (agent)")           \
        X(INSIDE, OPTIMIZER, "optimizer_bytes", BYTES, GAUGE,                                      \
          "what the optimizer keeps for each weight (agent)")                                      \
        X(INSIDE, BUFFERS, "buffers_bytes", BYTES, GAUGE,                                          \
          "what the model has besides weights, as running means (agent)")                          \
        X(INSIDE, ACTIVATIONS, "activations_bytes", BYTES, GAUGE,                                  \
          "what a forward pass kept for the backward pass, at most (agent)")                       \
        X(INSIDE, BATCH_BYTES, "batch_bytes", BYTES, GAUGE, "of the last batch (agent)")           \
        X(INSIDE, GPU_PARAMETERS, "gpu_parameters_bytes", BYTES, GAUGE,                            \
          "weights in GPU memory (agent)")                                                         \
        X(INSIDE, GPU_GRADIENTS, "gpu_gradients_bytes", BYTES, GAUGE,                              \
          "gradients in GPU memory (agent)")                                                       \
        X(INSIDE, GPU_OPTIMIZER, "gpu_optimizer_bytes", BYTES, GAUGE,                              \
          "what the optimizer keeps in GPU memory (agent)")                                        \
        X(INSIDE, GPU_BUFFERS, "gpu_buffers_bytes", BYTES, GAUGE,                                  \
          "the model's buffers in GPU memory (agent)")                                             \
        X(INSIDE, GPU_ACTIVATIONS, "gpu_activations_bytes", BYTES, GAUGE,                          \
          "what a forward pass kept in GPU memory, at most (agent)")                               \
        X(INSIDE, GPU_BATCH_BYTES, "gpu_batch_bytes", BYTES, GAUGE,                                \
          "of the last batch, in GPU memory (agent)")                                              \
        X(INSIDE, GPU_ALLOCATED, "gpu_allocated_bytes", BYTES, GAUGE,                              \
          "GPU memory in tensors, by the framework's allocator (agent)")                           \
        X(INSIDE, GPU_ALLOCATED_PEAK, "gpu_allocated_peak_bytes", BYTES, GAUGE,                    \
          "the most of that (agent)")                                                              \
        X(INSIDE, GPU_RESERVED, "gpu_reserved_bytes", BYTES, GAUGE,                                \
          "GPU memory that the framework's allocator holds, in tensors or not (agent)")            \
        X(INSIDE, GPU_INACTIVE, "gpu_inactive_bytes", BYTES, GAUGE,                                \
          "of that: free, but in pieces between tensors (agent)")                                  \
        X(INSIDE, GPU_RETRIES, "gpu_retries_count", COUNT, COUNTER,                                \
          "times that the allocator emptied its cache to find room (agent)")                       \
        X(INSIDE, PINNED, "pinned_bytes", BYTES, GAUGE, "RAM that is locked for the GPU (agent)")  \
        X(INSIDE, LOADER, "loader_bytes", BYTES, GAUGE,                                            \
          "what loaders' workers fetch ahead, by an estimate (agent)")                             \
        X(INSIDE, SHUFFLE, "shuffle_bytes", BYTES, GAUGE,                                          \
          "shuffle and cache buffers of tf.data, by an estimate (agent)")                          \
        X(INSIDE, RETRACES, "retraces_count", COUNT, COUNTER,                                      \
          "times that a tf.function was traced anew (agent)")                                      \
        X(INSIDE, VARIABLES, "variables_count", COUNT, GAUGE, "tf.Variables alive (agent)")        \
        X(INSIDE, OOMS, "ooms_count", COUNT, COUNTER,                                              \
          "errors for want of memory, also those that the program caught (agent)")                 \
        X(INSIDE, SPLITS, "splits_count", COUNT, COUNTER, "steps that were made in parts (agent)") \
        X(INSIDE, ZEROED, "zeroed_count", COUNT, COUNTER,                                          \
          "micro-batches whose gradients were zeroed before they were used (agent)")               \
        X(INSIDE, SAVED_STEP, "saved_step", CODE, GAUGE,                                           \
          "the last step that a checkpoint has; 0: none (agent)")                                  \
        X(INSIDE, HELD, "held_bytes", BYTES, GAUGE,                                                \
          "tensors that were alive after the last step, or when training was left (agent)")

/* One subject a process that has a probe, as that tells it from the inside: id is the pid. */
#define AFZ_INSIDE_METRICS(X)                                                                      \
        X(INSIDE, STEP, "step_count", COUNT, COUNTER, "training steps begun (probe, agent)")       \
        X(INSIDE, WAIT, "wait_ns", NS, COUNTER, "what steps waited for data (agent)")              \
        X(INSIDE, LIVE, "live_bytes", BYTES, GAUGE, "allocated and not freed (probe)")             \
        X(INSIDE, HIGH, "high_bytes", BYTES, GAUGE, "the most of it since last told (probe)")      \
        X(INSIDE, HEAP_TAKEN, "heap_taken_bytes", BYTES, GAUGE,                                    \
          "what malloc took from the kernel and has not given back (mallinfo2)")                   \
        X(INSIDE, HEAP_USED, "heap_used_bytes", BYTES, GAUGE,                                      \
          "of that: in blocks that the program uses (mallinfo2)")                                  \
        AFZ_INSIDE_TOLD(X)                                                                         \
        X(INSIDE, REFUSED, "refused_count", COUNT, COUNTER,                                        \
          "large allocations that were answered with ENOMEM under --policy adapt (probe)")         \
        X(INSIDE, REFUSED_BYTES, "refused_bytes", BYTES, COUNTER, "their bytes (probe)")

#endif
