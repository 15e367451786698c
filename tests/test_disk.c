#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "diskstats.h"
#include "fixture.h"
#include "fs_type.h"
#include "job_files.h"
#include "mountinfo.h"
#include "sense.h"

#define SECOND UINT64_C(1000000000)

/* diskstats */

static void test_diskstats_kernels(void **state)
{
        (void)state;
        static const char *const good[] = {
                "   8       0 sda 100 5 2000 300 40 6 5000 700 2 900 1000", /* 11 counters */
                "   8       0 sda 100 5 2000 300 40 6 5000 700 2 900 1000 1 2 3 4",     /* 4.18 */
                "   8       0 sda 100 5 2000 300 40 6 5000 700 2 900 1000 1 2 3 4 5 6", /* 5.5 */
        };
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                struct afz_diskstats d;
                assert_int_equal(afz_diskstats_parse(afz_span_str(good[i]), &d), 0);
                assert_int_equal(d.major, 8);
                assert_int_equal(d.minor, 0);
                assert_true(afz_span_eq(d.name, "sda"));
                assert_int_equal(d.reads, 100);
                assert_int_equal(d.read_sectors, 2000);
                assert_int_equal(d.read_ms, 300);
                assert_int_equal(d.writes, 40);
                assert_int_equal(d.written_sectors, 5000);
                assert_int_equal(d.write_ms, 700);
                assert_int_equal(d.in_flight, 2);
                assert_int_equal(d.busy_ms, 900);
                assert_int_equal(d.queue_ms, 1000);
        }
}

static void test_diskstats_hostile(void **state)
{
        (void)state;
        static const char *const bad[] = {
                "",
                "8",
                "8 0",
                "8 0 sda",
                "8 0 sda 1 2 3 4 5 6 7 8 9 10",
                "8 0 sda 1 2 3 4 5 6 7 8 9 10 x",
                "8 0 sda 1 2 3 4 5 6 7 8 9 10 11 x",
                "8 0 sda 1 2 3 4 5 6 7 8 9 10 -11",
                "8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 1.5",
                "8 0 sda 99999999999999999999999 2 3 4 5 6 7 8 9 10 11",
                "4096 0 sda 1 2 3 4 5 6 7 8 9 10 11",
                "8 1048576 sda 1 2 3 4 5 6 7 8 9 10 11",
                "-8 0 sda 1 2 3 4 5 6 7 8 9 10 11",
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct afz_diskstats d = {.reads = 77};
                assert_int_equal(afz_diskstats_parse(afz_span_str(bad[i]), &d), -EINVAL);
                assert_int_equal(d.reads, 77);
        }
}

static void test_partition_names(void **state)
{
        (void)state;
        static const struct {
                const char *disk, *name;
                bool is;
        } row[] = {
                {"sda", "sda1", true},
                {"sda", "sda15", true},
                {"sda", "sda", false},
                {"sda", "sdb1", false},
                {"sda", "sdaa", false},
                {"sda", "sdap1", false},
                {"nvme0n1", "nvme0n1p2", true},
                {"nvme0n1", "nvme0n12", false},
                {"dm-1", "dm-10", false},
                {"md1", "md10", false},
                {"md127", "md127p1", true},
                {"mmcblk0", "mmcblk0p1", true},
                {"mmcblk0", "mmcblk0boot0", false},
                {"loop1", "loop10", false},
                {"cciss/c0d0", "cciss/c0d0p1", true},
                {"", "1", false},
                {"nvme0n1", "nvme0n1p", false},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
                assert_int_equal(afz_diskstats_is_partition(afz_span_str(row[i].disk),
                                                            afz_span_str(row[i].name)),
                                 row[i].is);
}

/* mountinfo */

static void test_mountinfo_line(void **state)
{
        (void)state;
        static const struct {
                const char *line, *point, *type, *source;
        } good[] = {
                {"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw", "/", "ext4", "/dev/vda"},
                {"36 35 98:0 /mnt1 /my\\040data rw master:1 shared:2 - ext3 /dev/r\\134t rw,x=y",
                 "/my\\040data", "ext3", "/dev/r\\134t"},
                {"40 1 0:44 / /x rw - tmpfs  rw", "/x", "tmpfs", ""}, /* no source */
        };
        static const char *const bad[] = {
                "",
                "27",
                "27 1",
                "27 1 254",
                "27 1 254:",
                "27 1 254:x / / rw - ext4 /dev/vda rw",
                "27 1 :0 / / rw - ext4 /dev/vda rw",
                "27 1 254:0 / / rw",
                "27 1 254:0 / / rw shared:1",
                "27 1 254:0 / / rw -",
                "27 1 254:0 / / rw - ext4",
                "27 1 254:0 / relative rw - ext4 /dev/vda rw",
                "27 1 9999:0 / / rw - ext4 /dev/vda rw",
        };
        struct afz_mount m;
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                assert_int_equal(afz_mountinfo_parse(afz_span_str(good[i].line), &m), 0);
                assert_true(afz_span_eq(m.point, good[i].point));
                assert_true(afz_span_eq(m.type, good[i].type));
                assert_true(afz_span_eq(m.source, good[i].source));
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(afz_mountinfo_parse(afz_span_str(bad[i]), &m), -EINVAL);
}

static void test_unescape(void **state)
{
        (void)state;
        static const struct {
                const char *escaped, *name;
                int err;
        } row[] = {
                {"/mnt", "/mnt", 0},          {"/my\\040data", "/my data", 0},
                {"/a\\134040", "/a\\040", 0}, {"/tab\\011nl\\012", "/tab\tnl\n", 0},
                {"/cut\\04", NULL, -EINVAL},  {"/cut\\", NULL, -EINVAL},
                {"/no\\089", NULL, -EINVAL},  {"/nul\\000x", NULL, -EINVAL},
                {"/big\\777", NULL, -EINVAL}, {"/far-too-long-for-it", NULL, -ENAMETOOLONG},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                char buf[16];
                ssize_t n = afz_mount_unescape(afz_span_str(row[i].escaped), buf, sizeof buf);
                if (row[i].err) {
                        assert_int_equal(n, row[i].err);
                } else {
                        assert_int_equal(n, strlen(row[i].name));
                        assert_string_equal(buf, row[i].name);
                }
        }
        assert_int_equal(afz_mount_unescape(afz_span_str(""), NULL, 0), -ENAMETOOLONG);
}

static void test_path_to_mount(void **state)
{
        (void)state;
        static const char text[] = "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                   "30 27 8:2 / /data rw - ext4 /dev/sda2 rw\n"
                                   "31 30 0:50 / /data/net rw - nfs4 srv:/x rw\n"
                                   "garbage\n"
                                   "32 27 8:3 / /my\\040data rw - xfs /dev/sda3 rw\n"
                                   "33 27 0:51 / /shm rw - tmpfs tmpfs rw\n"
                                   "34 33 0:52 / /shm rw - tmpfs tmpfs rw\n" /* on top of 33 */
                                   "35 27 0:53 / /hidden/below rw - tmpfs tmpfs rw\n"
                                   "36 27 0:54 / /hidden rw - tmpfs tmpfs rw\n" /* hides 35 */
                                   "37 27 8:4 / /cut rw - ext4 /dev/sd";
        static const struct {
                const char *path;
                uint64_t id; /* 0: none */
        } row[] = {
                {"/", 27},         {"/home/x", 27},   {"/data", 30},       {"/data/set", 30},
                {"/database", 27}, {"/data/net", 31}, {"/data/net/a", 31}, {"/my data/x", 32},
                {"/my", 27},       {"/shm", 34},      {"/shm/x", 34},      {"/hidden/below", 36},
                {"relative", 0},   {"", 0},           {"socket:[123]", 0},
        };
        struct afz_mount mount[16];
        struct afz_mount_table table = {.cap = 16, .mount = mount};
        assert_int_equal(afz_mount_table_fill(&table, AFZ_SPAN(text)), 8);
        assert_int_equal(table.dropped, 1);
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                const struct afz_mount *m = afz_mount_of_path(&table, row[i].path);
                assert_int_equal(m ? m->id : 0, row[i].id);
        }
        /* A ring and a table without a root end too. */
        static const char ring[] = "1 2 0:1 / / rw - tmpfs a rw\n2 1 0:2 / / rw - tmpfs b rw\n";
        afz_mount_table_fill(&table, AFZ_SPAN(ring));
        assert_null(afz_mount_of_path(&table, "/x"));
        table.cap = 1;
        assert_int_equal(afz_mount_table_fill(&table, AFZ_SPAN(text)), 1);
        assert_int_equal(table.dropped, 8);
}

static void test_fs_types(void **state)
{
        (void)state;
        static const struct {
                const char *type;
                uint64_t major;
                enum afz_fs_class class;
        } row[] = {
                {"nfs4", 0, AFZ_FS_REMOTE},          {"fuse.sshfs", 0, AFZ_FS_REMOTE},
                {"fuse.whatever", 0, AFZ_FS_REMOTE}, {"fusectl", 0, AFZ_FS_KERNEL},
                {"ext4", 8, AFZ_FS_LOCAL},           {"btrfs", 0, AFZ_FS_LOCAL},
                {"tmpfs", 0, AFZ_FS_MEMORY},         {"newfs", 8, AFZ_FS_LOCAL},
                {"newfs", 0, AFZ_FS_UNKNOWN},        {"fuseblk", 8, AFZ_FS_REMOTE},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                struct afz_mount m = {.major = row[i].major, .type = afz_span_str(row[i].type)};
                assert_int_equal(afz_fs_type_of(&m)->class, row[i].class);
        }
}

static void test_fdinfo(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int r;
                bool writes;
        } row[] = {
                {"pos:\t0\nflags:\t0100000\nmnt_id:\t27\n", 0, false},
                {"pos:\t0\nflags:\t0100001\nmnt_id:\t27\nino:\t3\n", 0, true},
                {"pos:\t0\nflags:\t02002\nmnt_id:\t27\ncut", 0, true},
                {"pos:\t0\nflags:\t02002\nmnt_id:\t2", -EINVAL, false},
                {"pos:\t0\nflags:\t0x2\nmnt_id:\t27\n", -EINVAL, false},
                {"mnt_id:\t27\n", -EINVAL, false},
                {"", -EINVAL, false},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                uint64_t id = 0;
                bool writes = false;
                assert_int_equal(afz_fdinfo_parse(afz_span_str(row[i].text), &id, &writes),
                                 row[i].r);
                assert_int_equal(id, row[i].r == 0 ? 27 : 0);
                assert_int_equal(writes, row[i].writes);
        }
}

/* The sense on a small machine: job 100 with a child 101, and a stranger 200. */

/* Each its own group and session. */
#define STAT(pid, ppid)                                                                              \
#pid " (x) S " #ppid " " #pid " " #pid                                                       \
             " 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 50 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 " \
             "0 0 0 0 0 0 0\n"
#define READING "pos:\t0\nflags:\t0100000\nmnt_id:\t"
#define WRITING "pos:\t0\nflags:\t0100002\nmnt_id:\t"

static const struct afz_fixture_row machine[] = {
        {"machine", "page_bytes 4096\nclock_ticks 100\nself_pid 300\n"},
        {"fs_space", "1000 400 300 50 20 /\n"
                     "9000 8000 7000 0 0 /my data\n"
                     "77 77 77 7 7 /nfs\n"
                     "66 66 66 6 6 /nfs/local\n"
                     "500 200 200 9 8 /dev/shm\n"},
        {"proc/loadavg", "0.00 0.00 0.00 1/100 300\n"},
        {"proc/diskstats", "   1 0 ram0 5 0 8 0 0 0 0 0 0 0 0\n"
                           "   7 0 loop0 9 0 8 0 0 0 0 0 0 0 0\n"
                           "   7 1 loop1 9 0 8 0 0 0 0 0 0 0 0\n"
                           "   8 0 sda 100 5 2000 300 40 6 5000 700 2 900 1000 1 2 3 4 5 6\n"
                           "   8 1 sda1 90 5 1000 30 4 6 500 70 0 90 100 1 2 3 4 5 6\n"
                           "   8 16 sdb 7 0 70 1 0 0 0 0 4294967295 1 1 0 0 0 0 0 0\n"
                           "   8 17 sdb1 7 0 70 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
                           "   8 32 sdc 7 0 70 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
                           "   8 48 sdd 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                           " 253 0 dm-0 3 0 30 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
                           " 254 0 cut 3 0 30"},
        {"sys/block/sda/queue/rotational", "0\n"},
        {"sys/block/sdb/queue/rotational", "1\n"},
        {"sys/block/sdc/queue/rotational", "garbage\n"},
        {"sys/block/loop0/size", "0\n"},
        {"sys/block/loop1/size", "2048\n"},
        {"sys/block/dm-0/slaves/sdb1/", NULL},
        {"dev/mapper/vg-data", "-> ../dm-0"},
        {"proc/100/stat", STAT(100, 1)},
        {"proc/100/cwd", "-> /home/me"},
        {"proc/100/root", "-> /"},
        {"proc/100/mountinfo", "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                               "22 27 0:21 / /proc rw - proc proc rw\n"
                               "30 27 0:40 / /my\\040data rw - btrfs /dev/mapper/vg-data rw\n"
                               "31 27 0:50 / /nfs rw - nfs4 srv:/x rw\n"
                               "32 31 8:32 / /nfs/local rw - ext4 /dev/sdc rw\n"
                               "33 27 0:51 / /dev/shm rw - tmpfs tmpfs rw\n"
                               "34 33 0:52 / /dev/shm rw - tmpfs tmpfs2 rw\n"},
        {"proc/100/mountstats", "device /dev/sda1 mounted on / with fstype ext4\n"
                                "device srv:/x mounted on /nfs with fstype nfs4 statvers=1.1\n"
                                "\tbytes:\t1 2 3 4 5000 6000 7 8\n"
                                "\tper-op statistics\n"
                                "\t        READ: 10 12 0 1 2 3 40 50 0\n"
                                "\t       WRITE: 5 5 0 1 2 3 7 9 0\n"},
        {"proc/100/fdinfo/0", READING "22\n"}, /* /proc: no place for files */
        {"proc/100/fdinfo/1", READING "9\n"},  /* a pipe: its mount is in no table */
        {"proc/100/fdinfo/3", READING "31\n"},
        {"proc/101/stat", STAT(101, 100)},
        {"proc/101/fdinfo/0", READING "30\n"},
        {"proc/101/fdinfo/4", WRITING "30\n"},
        {"proc/200/stat", STAT(200, 1)},
        {"proc/200/fdinfo/0", WRITING "32\n"},
        {0},
};

struct run {
        struct afz_fixture *f;
        struct afz_batch *batch;
        void *sense;
};

static struct run start(const struct afz_fixture_row *rows, uint64_t pid)
{
        struct run run = {.f = afz_fixture_new(rows)};
        struct afz_target target = {pid};
        assert_int_equal(afz_batch_new(afz_sense_disk.max_samples, &run.batch), 0);
        assert_int_equal(afz_sense_disk.open(afz_fixture_env(run.f), &target, &run.sense), 0);
        return run;
}

static int look(struct run *run)
{
        afz_fixture_advance(run->f, 10 * SECOND);
        afz_batch_start(run->batch, afz_env_now(afz_fixture_env(run->f)));
        return afz_sense_disk.read(run->sense, run->batch);
}

static void finish(struct run *run)
{
        afz_sense_disk.close(run->sense);
        afz_batch_free(run->batch);
        afz_fixture_free(run->f);
}

static const struct afz_sample *find(const struct run *run, enum afz_kind kind, const char *name)
{
        for (size_t i = 0; i < run->batch->count; i++)
                if (run->batch->sample[i].subject.kind == kind &&
                    strcmp(run->batch->sample[i].name, name) == 0)
                        return &run->batch->sample[i];
        return NULL;
}

/* INT64_MIN stands for absent. */
#define ABSENT INT64_MIN
static int64_t get(const struct afz_sample *s, enum afz_metric m)
{
        int64_t v;
        assert_non_null(s);
        return afz_sample_get(s, m, &v) ? v : ABSENT;
}

static void test_disks(void **state)
{
        (void)state;
        struct run run = start(machine, 100);
        assert_int_equal(look(&run), 0);
        const struct afz_sample *sda = find(&run, AFZ_KIND_DISK, "sda");
        assert_int_equal(get(sda, AFZ_DISK_READ), 2000 * 512);
        assert_int_equal(get(sda, AFZ_DISK_WRITTEN), 5000 * 512);
        assert_int_equal(get(sda, AFZ_DISK_READS), 100);
        assert_int_equal(get(sda, AFZ_DISK_WRITES), 40);
        assert_int_equal(get(sda, AFZ_DISK_READ_TIME), 300000000);
        assert_int_equal(get(sda, AFZ_DISK_WRITE_TIME), 700000000);
        assert_int_equal(get(sda, AFZ_DISK_BUSY), 900000000);
        assert_int_equal(get(sda, AFZ_DISK_QUEUE_TIME), 1000000000);
        assert_int_equal(get(sda, AFZ_DISK_IN_FLIGHT), 2);
        assert_int_equal(get(sda, AFZ_DISK_ROTATIONAL), 0);
        assert_int_equal(sda->subject.id, 8 << 20);
        const struct afz_sample *sdb = find(&run, AFZ_KIND_DISK, "sdb");
        assert_int_equal(get(sdb, AFZ_DISK_IN_FLIGHT), ABSENT); /* below zero */
        assert_int_equal(get(sdb, AFZ_DISK_ROTATIONAL), 1);
        assert_int_equal(get(find(&run, AFZ_KIND_DISK, "sdc"), AFZ_DISK_ROTATIONAL), ABSENT);
        assert_non_null(find(&run, AFZ_KIND_DISK, "loop1"));
        static const char *const left_out[] = {"ram0", "loop0", "sda1", "sdb1", "sdd", "cut"};
        for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
                assert_null(find(&run, AFZ_KIND_DISK, left_out[i]));
        finish(&run);
}

static void test_disks_of_the_job(void **state)
{
        (void)state;
        struct run run = start(machine, 100);
        assert_int_equal(look(&run), 0);
        static const struct {
                const char *disk;
                int64_t uses;
        } row[] = {
                {"sda", 1},  /* the working folder */
                {"dm-0", 1}, /* btrfs, by the device that it was mounted from */
                {"sdb", 1},  /* what dm-0 is made of */
                {"sdc", 0},  /* a stranger's */
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
                assert_int_equal(get(find(&run, AFZ_KIND_DISK, row[i].disk), AFZ_DISK_JOB_USES),
                                 row[i].uses);
        /* A process that is closed to us: "no" is not known any more, "yes" is. */
        afz_fixture_remove(run.f, "proc/101/fdinfo");
        afz_fixture_set(run.f, "proc/101/fdinfo", "no folder");
        assert_int_equal(look(&run), 0);
        assert_int_equal(get(find(&run, AFZ_KIND_DISK, "sda"), AFZ_DISK_JOB_USES), 1);
        assert_int_equal(get(find(&run, AFZ_KIND_DISK, "sdc"), AFZ_DISK_JOB_USES), ABSENT);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/"), AFZ_FS_JOB_FILES), ABSENT);
        finish(&run);

        /* A mount that we do not know may be on any disk. */
        run = start(machine, 100);
        afz_fixture_append(run.f, "proc/100/mountinfo", "35 27 garbage\n");
        assert_int_equal(look(&run), 0);
        assert_int_equal(get(find(&run, AFZ_KIND_DISK, "sda"), AFZ_DISK_JOB_USES), 1);
        assert_int_equal(get(find(&run, AFZ_KIND_DISK, "sdc"), AFZ_DISK_JOB_USES), ABSENT);
        finish(&run);
}

static void test_file_systems(void **state)
{
        (void)state;
        struct run run = start(machine, 100);
        assert_int_equal(look(&run), 0);
        const struct afz_sample *root = find(&run, AFZ_KIND_FS, "/");
        assert_int_equal(root->subject.id, 27);
        assert_string_equal(root->detail, "ext4 /dev/sda1");
        assert_int_equal(get(root, AFZ_FS_TOTAL), 1000);
        assert_int_equal(get(root, AFZ_FS_FREE), 400);
        assert_int_equal(get(root, AFZ_FS_AVAILABLE), 300);
        assert_int_equal(get(root, AFZ_FS_FILES_FREE), 20);
        assert_int_equal(get(root, AFZ_FS_DEVICE), 8 << 20);
        assert_int_equal(get(root, AFZ_FS_NETWORK), 0);
        assert_int_equal(get(root, AFZ_FS_JOB_FILES), 0); /* it only works there */
        assert_int_equal(get(root, AFZ_FS_JOB_WRITES), 0);
        const struct afz_sample *data = find(&run, AFZ_KIND_FS, "/my data");
        assert_int_equal(get(data, AFZ_FS_JOB_FILES), 2);
        assert_int_equal(get(data, AFZ_FS_JOB_WRITES), 1);
        assert_int_equal(get(data, AFZ_FS_DEVICE), 253 << 20);
        assert_int_equal(get(data, AFZ_FS_FILES_FREE), ABSENT); /* btrfs counts none */
        /* Never asked for its space, though the fixture could answer. */
        const struct afz_sample *nfs = find(&run, AFZ_KIND_FS, "/nfs");
        assert_int_equal(get(nfs, AFZ_FS_TOTAL), ABSENT);
        assert_int_equal(get(nfs, AFZ_FS_NETWORK), 1);
        assert_int_equal(get(nfs, AFZ_FS_NET_READ), 5000);
        assert_int_equal(get(nfs, AFZ_FS_NET_WRITTEN), 6000);
        assert_int_equal(get(nfs, AFZ_FS_NET_OPS), 15);
        assert_int_equal(get(nfs, AFZ_FS_NET_WAIT), 47000000);
        assert_int_equal(get(nfs, AFZ_FS_NET_RETRANS), 2);
        assert_int_equal(get(nfs, AFZ_FS_DEVICE), ABSENT);
        assert_null(find(&run, AFZ_KIND_FS, "/proc"));
        assert_null(find(&run, AFZ_KIND_FS, "/nfs/local"));
        assert_null(find(&run, AFZ_KIND_FS, "/dev/shm"));
        finish(&run);
}

static void test_space_is_asked_with_care(void **state)
{
        (void)state;
        struct run run = start(machine, 100);
        afz_fixture_set(run.f, "proc/100/fdinfo/5", WRITING "32\n"); /* below a network mount */
        afz_fixture_set(run.f, "proc/100/fdinfo/6", WRITING "33\n"); /* hidden */
        assert_int_equal(look(&run), 0);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/nfs/local"), AFZ_FS_TOTAL), ABSENT);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/nfs/local"), AFZ_FS_DEVICE), 8 << 20 | 32);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/dev/shm"), AFZ_FS_TOTAL), ABSENT);
        afz_fixture_set(run.f, "proc/100/fdinfo/6", WRITING "34\n"); /* the one that is seen */
        assert_int_equal(look(&run), 0);
        const struct afz_sample *shm = find(&run, AFZ_KIND_FS, "/dev/shm");
        assert_int_equal(get(shm, AFZ_FS_TOTAL), 500);
        assert_string_equal(shm->detail, "tmpfs tmpfs2");
        finish(&run);
}

static void test_many_files_take_turns(void **state)
{
        (void)state;
        struct run run = start(machine, 100);
        for (int i = 10; i < 3010; i++) {
                char path[64];
                snprintf(path, sizeof path, "proc/100/fdinfo/%d", i);
                afz_fixture_set(run.f, path, READING "31\n");
        }
        /* 3003 files of process 100 do not fit into a sweep: process 101 has its turn all the same,
         * and how many there are is then not known. */
        for (int i = 0; i < 5; i++)
                assert_int_equal(look(&run), 0);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/my data"), AFZ_FS_JOB_WRITES), 1);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/nfs"), AFZ_FS_JOB_FILES), ABSENT);
        /* 600 fit into three rounds. */
        for (int i = 610; i < 3010; i++) {
                char path[64];
                snprintf(path, sizeof path, "proc/100/fdinfo/%d", i);
                afz_fixture_remove(run.f, path);
        }
        for (int i = 0; i < 8; i++)
                assert_int_equal(look(&run), 0);
        assert_int_equal(get(find(&run, AFZ_KIND_FS, "/nfs"), AFZ_FS_JOB_FILES), 601);
        finish(&run);
}

static void test_disk_faults(void **state)
{
        (void)state;
        struct run run = start(machine, 100);
        assert_int_equal(look(&run), 0);
        const char *name = find(&run, AFZ_KIND_DISK, "sdc")->name;
        /* The job vanishes, and so does everything of it. */
        afz_fixture_remove(run.f, "proc/100");
        afz_fixture_remove(run.f, "proc/101");
        assert_int_equal(look(&run), 0);
        assert_null(find(&run, AFZ_KIND_FS, "/my data"));
        assert_non_null(find(&run, AFZ_KIND_DISK, "sda"));
        /* A disk is pulled out: its name is still there for those who show the last reading. */
        afz_fixture_set(run.f, "proc/diskstats", "8 0 sda 100 5 2000 300 40 6 5000 700 2 900 1\n");
        assert_int_equal(look(&run), 0);
        assert_null(find(&run, AFZ_KIND_DISK, "sdc"));
        assert_string_equal(name, "sdc");
        afz_fixture_set(run.f, "proc/diskstats", "garbage\n\n\n8 0 sda 1 2\n");
        assert_int_equal(look(&run), 0);
        assert_null(find(&run, AFZ_KIND_DISK, "sda"));
        finish(&run);
}

static void test_disk_without_parts(void **state)
{
        (void)state;
        static const struct afz_fixture_row no_sys[] = {
                {"proc/diskstats",
                 "8 0 sda 1 0 2 0 3 0 4 0 0 0 0\n8 1 sda1 1 0 2 0 3 0 4 0 0 0 0\n"},
                {0},
        };
        struct run run = start(no_sys, 100);
        assert_int_equal(look(&run), 0);
        assert_int_equal(run.batch->count, 1);
        const struct afz_sample *sda = find(&run, AFZ_KIND_DISK, "sda");
        assert_int_equal(get(sda, AFZ_DISK_ROTATIONAL), ABSENT);
        assert_int_equal(get(sda, AFZ_DISK_JOB_USES), ABSENT);
        afz_fixture_break(run.f, "proc/diskstats"); /* the open file lives on */
        assert_int_equal(look(&run), 0);
        finish(&run);

        static const struct afz_fixture_row nothing[] = {{"proc/", NULL}, {0}};
        struct afz_fixture *f = afz_fixture_new(nothing);
        struct afz_target target = {100};
        void *sense;
        assert_int_equal(afz_sense_disk.open(afz_fixture_env(f), &target, &sense), -ENODATA);
        afz_sense_disk.close(NULL);
        afz_fixture_break(f, "proc/diskstats");
        assert_int_equal(afz_sense_disk.open(afz_fixture_env(f), &target, &sense), 0);
        struct afz_batch *batch;
        assert_int_equal(afz_batch_new(4, &batch), 0);
        afz_batch_start(batch, 1);
        assert_int_equal(afz_sense_disk.read(sense, batch), -EISDIR);
        afz_batch_free(batch);
        afz_sense_disk.close(sense);
        afz_fixture_free(f);
}

static void test_no_descriptor_is_left(void **state)
{
        (void)state;
        size_t before = afz_fixture_open_fds();
        struct run run = start(machine, 100);
        for (int i = 0; i < 20; i++)
                assert_int_equal(look(&run), 0);
        finish(&run);
        assert_int_equal(afz_fixture_open_fds(), before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_diskstats_kernels),
                cmocka_unit_test(test_diskstats_hostile),
                cmocka_unit_test(test_partition_names),
                cmocka_unit_test(test_mountinfo_line),
                cmocka_unit_test(test_unescape),
                cmocka_unit_test(test_path_to_mount),
                cmocka_unit_test(test_fs_types),
                cmocka_unit_test(test_fdinfo),
                cmocka_unit_test(test_disks),
                cmocka_unit_test(test_disks_of_the_job),
                cmocka_unit_test(test_file_systems),
                cmocka_unit_test(test_space_is_asked_with_care),
                cmocka_unit_test(test_many_files_take_turns),
                cmocka_unit_test(test_disk_faults),
                cmocka_unit_test(test_disk_without_parts),
                cmocka_unit_test(test_no_descriptor_is_left),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
