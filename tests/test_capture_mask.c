#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture_known.h"
#include "capture_mask.h"
#include "mountinfo.h"
#include "mountstats.h"
#include "proc_stat.h"
#include "role.h"

static const struct afz_mask mask = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};

#define TEXT(literal) ((struct afz_span){(literal), sizeof(literal) - 1})
/* The same in a static table, where a compound literal may not stand. */
#define ROW(literal)                                                                               \
        {                                                                                          \
                (literal), sizeof(literal) - 1                                                     \
        }

/* The result lives until the next call. */
static struct afz_span run(afz_mask_text *f, struct afz_span text)
{
        static char buf[1 << 17];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        memset(buf, '~', sizeof buf);
        f(&mask, text, &out);
        assert_int_equal(out.err, 0);
        assert_true(out.len <= afz_mask_room(text.n));
        buf[out.len] = '\0';
        return (struct afz_span){buf, out.len};
}

static void assert_masked(afz_mask_text *f, const char *text, const char *want)
{
        assert_string_equal(run(f, afz_span_str(text)).p, want);
}

static void assert_hidden(struct afz_span shown, const char *secret)
{
        if (memmem(shown.p, shown.n, secret, strlen(secret)))
                fail_msg("'%s' survives in '%.*s'", secret, (int)shown.n, shown.p);
}

/* SipHash-2-4's own test: key 00..0f, message 00..0e, hash a129ca6149be45e5. */
static void test_hash_is_siphash(void **state)
{
        (void)state;
        char message[15];
        for (int i = 0; i < 15; i++)
                message[i] = (char)i;
        struct afz_span shown = run(afz_mask_word, (struct afz_span){message, sizeof message});
        assert_string_equal(shown.p, "xbe45e5");
}

static void test_same_word_same_mask_other_key_other_mask(void **state)
{
        (void)state;
        char a[16], b[16];
        struct afz_mask other = mask;
        other.key[1] ^= 1;
        snprintf(a, sizeof a, "%s", run(afz_mask_word, TEXT("acme")).p);
        snprintf(b, sizeof b, "%s", run(afz_mask_word, TEXT("acme")).p);
        assert_string_equal(a, b);
        struct afz_out out = afz_out_to(-1, b, sizeof b - 1);
        afz_mask_word(&other, TEXT("acme"), &out);
        b[out.len] = '\0';
        assert_string_not_equal(a, b);
}

/* Whatever stands here, SECRET must be gone. */
static const struct {
        const char *what;
        afz_mask_text *mask;
        struct afz_span text;
} secrets[] = {
        {"option with value", afz_mask_cmdline, ROW("python3\0t.py\0--api-key=SECRET\0")},
        {"value behind an option", afz_mask_cmdline, ROW("python3\0t.py\0--token\0SECRET\0")},
        {"letter with value", afz_mask_cmdline, ROW("mysql\0-pSECRET\0")},
        {"letter, equals", afz_mask_cmdline, ROW("tool\0-p=SECRET\0")},
        {"option of odd bytes", afz_mask_cmdline, ROW("tool\0--a:SECRET\0--\xff\x01SECRET\0")},
        {"name of nothing", afz_mask_cmdline, ROW("tool\0--=SECRET\0")},
        {"program", afz_mask_cmdline, ROW("/home/SECRET/bin/SECRET\0")},
        {"folder of a program", afz_mask_cmdline, ROW("/home/SECRET/bin/python3\0")},
        {"version of a program", afz_mask_cmdline, ROW("python3.11-SECRET\0")},
        {"title in one word", afz_mask_cmdline, ROW("postgres: SECRET db 10.0.0.1 idle")},
        {"title after a slash", afz_mask_cmdline, ROW("nginx: /etc/python SECRET")},
        {"script", afz_mask_cmdline, ROW("python3\0/data/SECRET/SECRET.py\0")},
        {"script of a known start", afz_mask_cmdline, ROW("python3\0jupyter-SECRET.py\0")},
        {"module", afz_mask_cmdline, ROW("python3\0-m\0SECRET.train\0")},
        {"module of a known start", afz_mask_cmdline, ROW("python3\0-m\0accelerate.SECRET\0")},
        {"message", afz_mask_cmdline, ROW("git\0commit\0-m\0SECRET\0")},
        {"code", afz_mask_cmdline, ROW("python3\0-c\0import os; k='SECRET'\0")},
        {"code of a known start", afz_mask_cmdline,
         ROW("python3\0-c\0from multiprocessing.spawn import spawn_main; x='SECRET'\0")},
        {"shell", afz_mask_cmdline, ROW("bash\0-c\0export TOKEN=SECRET; train\0")},
        {"UTF-8 and blanks", afz_mask_cmdline, ROW("python3\0d\xc3\xa4ta SECRET\n\0")},
        {"cut short", afz_mask_cmdline, ROW("python3\0SECRET")},
        {"cut in an option", afz_mask_cmdline, ROW("python3\0--key=SECR\0--key=SECRET")},
        {"variable", afz_mask_environ, ROW("KEY=SECRET\0RANK=SECRET\0RANK=0SECRET\0")},
        {"variable cut short", afz_mask_environ, ROW("RANK=1\0OMP_NUM_THREADS=SECRET")},
        {"no variable", afz_mask_environ, ROW("SECRET\0=SECRET\0\0RANK\0SECRET=1\0")},
        {"name of a process", afz_mask_stat, ROW("7 (SECRET) S 1 7 7 0 -1\n")},
        {"name with parenthesis", afz_mask_stat, ROW("7 (a) Z SECRET) S 1 7 7 0 -1\n")},
        {"name with newline", afz_mask_stat, ROW("7 (a\nSECRET) S 1 7 7 0 -1\n")},
        {"name cut short", afz_mask_stat, ROW("7 (a) Z SECRET")},
        {"name cut short after a blank", afz_mask_stat, ROW("7 (a) S SECRET\n")},
        {"no number", afz_mask_stat, ROW("SECRET (a) S 1\n")},
        {"no stat", afz_mask_stat, ROW("SECRET")},
        {"Name:", afz_mask_status, ROW("Name:\tSECRET\nUmask:\t0022\n")},
        {"Name: cut short", afz_mask_status, ROW("Name:\tSECRET")},
        {"groups", afz_mask_status, ROW("Name:\tsh\nGroups:\t4 SECRET \n")},
        {"comm", afz_mask_comm_file, ROW("SECRET\n")},
        {"comm of a known start", afz_mask_comm_file, ROW("pythonSECRET\n")},
        {"comm with newline", afz_mask_comm_file, ROW("a\nSECRET")},
        {"name of a DRM client", afz_mask_fdinfo,
         ROW("pos:\t0\ndrm-client-name:\tSECRET\ndrm-client-id:\t3\n")},
        {"interface of a tunnel", afz_mask_fdinfo, ROW("pos:\t0\niff:\tSECRET\npo:SECRET")},
        {"mount point", afz_mask_mountinfo,
         ROW("27 1 254:0 / /mnt/SECRET rw - ext4 /dev/vda rw\n")},
        {"mount point with a blank", afz_mask_mountinfo,
         ROW("27 1 254:0 / /mnt/my\\040SECRET rw - ext4 /dev/vda rw\n")},
        {"mount point with a bad escape", afz_mask_mountinfo,
         ROW("27 1 254:0 / /mnt/my\\04SECRET rw - ext4 /dev/vda rw\n")},
        {"root of a mount", afz_mask_mountinfo,
         ROW("27 1 254:0 /SECRET/x / rw - ext4 /dev/vda rw\n")},
        {"server", afz_mask_mountinfo, ROW("9 1 0:9 / /n rw - nfs4 SECRET.org:/SECRET rw\n")},
        {"share", afz_mask_mountinfo, ROW("9 1 0:9 / /n rw - cifs //SECRET/SECRET rw\n")},
        {"user at a server", afz_mask_mountinfo,
         ROW("9 1 0:9 / /n rw - fuse.sshfs SECRET@SECRET:x rw\n")},
        {"pool", afz_mask_mountinfo, ROW("9 1 0:9 / /n rw - zfs tank/SECRET rw\n")},
        {"super options", afz_mask_mountinfo,
         ROW("9 1 0:9 / /n rw - cifs none ro,username=SECRET\n")},
        {"super options, no source", afz_mask_mountinfo,
         ROW("9 1 0:9 / /n rw - cifs  rw,username=SECRET\n")},
        {"type", afz_mask_mountinfo, ROW("9 1 0:9 / /n rw - fuse.SECRET x rw\n")},
        {"no mount", afz_mask_mountinfo, ROW("SECRET\n9 1 0:9 / SECRET\n")},
        {"mount cut short", afz_mask_mountinfo, ROW("9 1 0:9 / /n rw - nfs SECRET:/x rw")},
        {"head", afz_mask_mountstats,
         ROW("device SECRET:/x mounted on /SECRET with fstype nfs4 statvers=1.1\n")},
        {"options", afz_mask_mountstats, ROW("\topts:\trw,vers=4.2,addr=SECRET\n")},
        {"implementation", afz_mask_mountstats, ROW("\timpl_id:\tname='SECRET',date='0,0'\n")},
        {"no counters", afz_mask_mountstats, ROW("SE CRET\n\tx: SECRET\nSECRET\nSECRET")},
        {"swap file", afz_mask_swaps, ROW("Filename Type\n/home/SECRET/swap file 1 0 -2\n")},
        {"link", afz_mask_target, ROW("/home/SECRET/SECRET (deleted)")},
        {"link with newline", afz_mask_target, ROW("/home/a\nSECRET")},
        {"memfd", afz_mask_target, ROW("/memfd:SECRET (deleted)")},
        {"socket that is none", afz_mask_target, ROW("socket:[SECRET]")},
        {"anonymous that is not known", afz_mask_target, ROW("anon_inode:[SECRET]")},
        {"long number", afz_mask_path, ROW("/home/4915112345678SECRET")},
        {"cgroup", afz_mask_cgroup_path, ROW("/user.slice/app-SECRET.scope/SECRET")},
        {"slice", afz_mask_cgroup_path, ROW("/SECRET.slice")},
        {"kernel of one's own", afz_mask_release, ROW("6.1.0-SECRET-amd64")},
};

static void test_no_secret_survives(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
                struct afz_span shown = run(secrets[i].mask, secrets[i].text);
                if (memmem(shown.p, shown.n, "SECR", 4))
                        fail_msg("%s: SECRET survives in '%s'", secrets[i].what, shown.p);
        }
}

/* Cut anywhere, and with any byte gone wrong, a text still shows no secret. */
static void test_no_secret_survives_a_cut(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
                for (size_t n = 0; n <= secrets[i].text.n; n++)
                        assert_hidden(run(secrets[i].mask, (struct afz_span){secrets[i].text.p, n}),
                                      "SECRET");
        }
}

static void test_command_lines(void **state)
{
        (void)state;
        struct afz_span shown = run(afz_mask_cmdline,
                                    TEXT("/usr/bin/python3.11\0-u\0train.py\0--lr=0.1\0--fast\0"));
        static const char want[] = "python3.11\0-u\0";
        assert_memory_equal(shown.p, want, sizeof want - 1);
        assert_non_null(memmem(shown.p, shown.n, ".py\0--lr=x", 10));
        assert_non_null(memmem(shown.p, shown.n, "\0--fast\0", 8));
        assert_masked(afz_mask_cmdline, "", "");
        shown = run(afz_mask_cmdline, TEXT("-bash\0"));
        assert_true(shown.n > 1);
        /* The name of an option is kept, but not what is too long for one. */
        shown = run(afz_mask_cmdline, TEXT("t\0--SECRETSECRETSECRETSECRETSECRETSECRETSECRET\0"));
        assert_hidden(shown, "SECRET");
        /* An argument that is empty is one all the same. */
        shown = run(afz_mask_cmdline, TEXT("sh\0\0-\0--\0"));
        assert_int_equal(shown.n, 9);
        assert_memory_equal(shown.p, "sh\0\0-\0--\0", 9);
}

static void test_environ_keeps_numbers_of_ranks(void **state)
{
        (void)state;
        struct afz_span shown =
                run(afz_mask_environ,
                    TEXT("PATH=/bin\0RANK=3\0LOCAL_RANK=x\0WORLD_SIZE=8\0OMP_NUM_THREADS=4\0HOME=/"
                         "h\0"));
        static const char want[] = "RANK=3\0WORLD_SIZE=8\0OMP_NUM_THREADS=4\0";
        assert_int_equal(shown.n, sizeof want - 1);
        assert_memory_equal(shown.p, want, sizeof want - 1);
}

/* Roles are guessed from what is masked: they must not change. */
static void test_roles_stay(void **state)
{
        (void)state;
        static const struct afz_span lines[] = {
                ROW("/usr/bin/python3\0train.py\0"),
                ROW("python3\0-c\0from multiprocessing.spawn import spawn_main; f(a=5)\0--m\0"),
                ROW("python3\0-c\0from multiprocessing.resource_tracker import main;main(4)\0"),
                ROW("python3\0-c\0from multiprocessing.semaphore_tracker import main\0"),
                ROW("python3\0-c\0from multiprocessing.forkserver import main\0"),
                ROW("python\0-c\0from joblib.externals.loky.backend.resource_tracker import m\0"),
                ROW("python\0-c\0print(1)\0"),
                ROW("python3\0-u\0-m\0torch.distributed.run\0--nproc\0"
                    "2\0t.py\0"),
                ROW("python3\0-m\0torch.distributed.launch\0t.py\0"),
                ROW("python3\0-m\0accelerate.commands.launch\0t.py\0"),
                ROW("python3\0-m\0ipykernel_launcher\0-f\0x.json\0"),
                ROW("python3\0-m\0ipykernel\0"),
                ROW("python3\0-m\0jupyterlab\0"),
                ROW("python3\0-m\0notebook\0"),
                ROW("python3\0-m\0mine\0"),
                ROW("python3\0/opt/venv/bin/torchrun\0t.py\0"),
                ROW("python3\0-X\0dev\0-W\0ignore\0/opt/venv/bin/accelerate\0launch\0"),
                ROW("python3\0/x/jupyter-lab\0--no-browser\0"),
                ROW("python3\0/x/ipykernel_launcher.py\0-f\0k.json\0"),
                ROW("python3\0/x/deepspeed\0t.py\0"),
                ROW("python3.12-dbg\0/x/torchrun\0"),
                ROW("torchrun\0--standalone\0t.py\0"),
                ROW("/usr/bin/mpirun\0-n\0"
                    "2\0t\0"),
                ROW("mpiexec.hydra\0t\0"),
                ROW("horovodrun\0t\0"),
                ROW("srun\0t\0"),
                ROW("uv\0run\0t.py\0"),
                ROW("/bin/bash\0run.sh\0"),
                ROW("sh\0-c\0train\0"),
                ROW("env\0A=b\0python3\0"),
                ROW("nohup\0python3\0"),
                ROW("time\0python3\0"),
                ROW("zsh\0"),
                ROW("fish\0"),
                ROW("dash\0"),
                ROW("bashful\0"),
                ROW("/opt/acme/trainer\0--gpu\0"),
                ROW("python3\0cut"),
                ROW(""),
        };
        int seen[AFZ_ROLE_COUNT] = {0};
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                for (int root = 0; root < 2; root++) {
                        struct afz_role_clues clues = {
                                .comm = TEXT("python3"), .cmdline = lines[i], .is_root = root};
                        enum afz_role before = afz_role_guess(&clues).role;
                        clues.cmdline = run(afz_mask_cmdline, lines[i]);
                        assert_int_equal(afz_role_guess(&clues).role, before);
                        seen[before]++;
                }
        }
        /* The table must try them all, or a new rule would go unnoticed. */
        for (int role = 0; role < AFZ_ROLE_COUNT; role++)
                if (role != AFZ_ROLE_RANK && seen[role] == 0)
                        fail_msg("no command line here has the role '%s'",
                                 afz_role_name((enum afz_role)role));
}

static void test_comm_is_as_long_as_before(void **state)
{
        (void)state;
        static const char *const names[] = {"a", "train", "exactly15bytes.", "a) Z b",
                                            "a_name_of_the_kernels_that_is_far_longer_than_16"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                struct afz_span shown = run(afz_mask_comm, afz_span_str(names[i]));
                assert_int_equal(shown.n, strlen(names[i]));
                assert_string_not_equal(shown.p, names[i]);
        }
        assert_masked(afz_mask_comm, "python3.11", "python3.11");
        assert_masked(afz_mask_comm, "pt_data_worker", "pt_data_worker");
        assert_masked(afz_mask_comm, "bash", "bash");
        assert_masked(afz_mask_comm, "", "");
}

static void test_stat_parses_as_before(void **state)
{
        (void)state;
        static const char text[] =
                "4242 (a) Z b) S 1 4242 4242 0 -1 4194304 9687 6599 2 0 7 4 3 1 20 -5 3 0 306237 "
                "44023808 9843 18446744073709551615 94001 94002 94003 94004 94005 0 0 16781318 0 1 "
                "0 0 17 0 0 0 11 0 0 94006 94007 94008 94009 94010 94011 94012 0\n";
        struct afz_proc_stat before, after;
        assert_int_equal(afz_proc_stat_parse(TEXT(text), &before), 0);
        struct afz_span shown = run(afz_mask_stat, TEXT(text));
        assert_int_equal(afz_proc_stat_parse(shown, &after), 0);
        assert_int_equal(after.comm.n, before.comm.n);
        before.comm = after.comm;
        assert_int_equal(after.pid, before.pid);
        assert_int_equal(after.state, before.state);
        assert_int_equal(after.ppid, before.ppid);
        assert_int_equal(after.nice, before.nice);
        assert_int_equal(after.threads, before.threads);
        assert_int_equal(after.user_ticks, before.user_ticks);
        assert_int_equal(after.start_ticks, before.start_ticks);
        assert_int_equal(after.io_wait_ticks, before.io_wait_ticks);
        assert_hidden(shown, "940"); /* addresses */
}

static void test_paths(void **state)
{
        (void)state;
        assert_masked(afz_mask_target, "socket:[123]", "socket:[123]");
        assert_masked(afz_mask_target, "pipe:[1]", "pipe:[1]");
        assert_masked(afz_mask_target, "anon_inode:[eventfd]", "anon_inode:[eventfd]");
        assert_masked(afz_mask_target, "anon_inode:inotify", "anon_inode:inotify");
        assert_masked(afz_mask_target, "mnt:[4026531832]", "mnt:[4026531832]");
        assert_masked(afz_mask_target, "/dev/nvidia0", "/dev/nvidia0");
        assert_masked(afz_mask_target, "/dev/pts/3", "/dev/pts/3");
        assert_masked(afz_mask_target, "/dev/dri/renderD128", "/dev/dri/renderD128");
        assert_masked(afz_mask_target, "../dm-0", "../dm-0");
        assert_masked(afz_mask_target, "../../thermal_zone0", "../../thermal_zone0");
        assert_masked(afz_mask_target, "/", "/");
        assert_masked(afz_mask_target, "", "");
        assert_masked(afz_mask_path, "/proc/17/root/usr/lib", "/proc/17/root/usr/lib");
        assert_true(afz_span_starts(run(afz_mask_path, TEXT("//a")), "//x"));
        assert_true(afz_span_ends(run(afz_mask_target, TEXT("/tmp/mine (deleted)")), " (deleted)"));
        assert_true(afz_span_starts(run(afz_mask_target, TEXT("/memfd:mine")), "/memfd:x"));
        /* No blank or newline may end a line or a word of a table. */
        struct afz_span shown = run(afz_mask_path, TEXT("/mnt/my data\n/x (deleted)"));
        for (size_t i = 0; i < shown.n; i++)
                assert_true(shown.p[i] > ' ' && shown.p[i] < 127);
}

static void test_mounts_fit_paths(void **state)
{
        (void)state;
        char path[256], point[256];
        struct afz_span shown = run(afz_mask_mountinfo,
                                    TEXT("27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
                                         "28 27 0:40 / /mnt/my\\040data rw - nfs4 fs.acme.org:/exp "
                                         "ro,addr=10.0.0.1\n"));
        struct afz_mount mount[2];
        struct afz_mount_table table = {.mount = mount, .cap = 2};
        char text[1024];
        memcpy(text, shown.p, shown.n);
        assert_int_equal(afz_mount_table_fill(&table, (struct afz_span){text, shown.n}), 2);
        snprintf(path, sizeof path, "%s", run(afz_mask_target, TEXT("/mnt/my data/set")).p);
        assert_ptr_equal(afz_mount_of_path(&table, path), &mount[1]);
        assert_true(afz_mount_unescape(mount[1].point, point, sizeof point) > 0);
        assert_string_equal(point, run(afz_mask_path, TEXT("/mnt/my data")).p);
        assert_true(afz_span_eq(mount[0].source, "/dev/vda"));
        assert_true(afz_span_eq(mount[1].type, "nfs4"));
        assert_int_equal(mount[1].minor, 40);
        assert_non_null(strstr(text, "shared:1 - ext4 /dev/vda rw\n"));
        assert_non_null(strstr(text, " ro\n"));

        /* A mount without a source stays one. */
        shown = run(afz_mask_mountinfo, TEXT("9 1 0:9 / /mnt rw - tmpfs  rw,size=1k\n"));
        assert_string_equal(shown.p, "9 1 0:9 / /mnt rw - tmpfs rw\n");
}

static void test_mountstats_parse_as_before(void **state)
{
        (void)state;
        static const char text[] =
                "device proc mounted on /proc with fstype proc\n"
                "device fs.acme.org:/exp mounted on /mnt/my\\040data with fstype nfs4 "
                "statvers=1.1\n"
                "\topts:\tro,vers=4.2,addr=10.0.0.1\n"
                "\tage:\t77\n"
                "\timpl_id:\tname='',domain='acme.org',date='0,0'\n"
                "\tbytes:\t1 2 3 4 555 666 7 8 \n"
                "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
                "\txprt:\ttcp 892 1 1 0 0 4 4 0 4 0 2 0 0\n"
                "\tper-op statistics\n"
                "\t        NULL: 1 1 0 44 24 0 0 0 0\n"
                "\t        READ: 10 12 0 1 2 3 44 5 0\n";
        struct afz_mountstats before, after;
        char point[64];
        assert_int_equal(afz_mountstats_find(TEXT(text), TEXT("/mnt/my\\040data"), &before), 0);
        snprintf(point, sizeof point, "%s", run(afz_mask_path, TEXT("/mnt/my data")).p);
        struct afz_span shown = run(afz_mask_mountstats, TEXT(text));
        assert_int_equal(afz_mountstats_find(shown, afz_span_str(point), &after), 0);
        assert_int_equal(after.has_bytes, before.has_bytes);
        assert_int_equal(after.read_bytes, before.read_bytes);
        assert_int_equal(after.written_bytes, before.written_bytes);
        assert_int_equal(after.has_ops, before.has_ops);
        assert_int_equal(after.ops, before.ops);
        assert_int_equal(after.wait_ms, before.wait_ms);
        assert_int_equal(after.resent, before.resent);
        assert_int_equal(after.read_ops, before.read_ops);
        assert_int_equal(after.read_wait_ms, before.read_wait_ms);
        assert_hidden(shown, "acme");
        assert_hidden(shown, "10.0.0.1");
        assert_non_null(strstr(shown.p, "\topts:\tro\n"));
}

static void test_cgroups(void **state)
{
        (void)state;
        static const char *const kept[] = {
                "/",
                "/user.slice/user-1000.slice/user@1000.service/app.slice",
                "/user.slice/user-1000.slice/session-3.scope",
                "/init.scope",
                "/../../system.slice",
                "/kubepods.slice/kubepods-burstable.slice",
                "/slurm/uid_1000/job_42/step_0/task_0",
        };
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
                assert_masked(afz_mask_cgroup_path, kept[i], kept[i]);
        assert_true(afz_span_ends(run(afz_mask_cgroup_path, TEXT("/app.slice/mine.service")),
                                  ".service"));
}

static struct afz_span name_of(enum afz_root root, enum afz_open_kind kind, const char *path)
{
        static char buf[4096];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        afz_mask_name(&mask, root, kind, afz_span_str(path), &out);
        buf[out.len] = '\0';
        return (struct afz_span){buf, out.len};
}

/* The folder in the tree must be what the masked text says it is. */
static void test_names_fit_texts(void **state)
{
        (void)state;
        char want[256];
        snprintf(want, sizeof want, "memory%s/memory.max",
                 run(afz_mask_cgroup_path, TEXT("/mine/job.scope")).p);
        assert_string_equal(
                name_of(AFZ_ROOT_CGROUP, AFZ_OPEN_FILE, "memory/mine/job.scope/memory.max").p,
                want);
        assert_string_equal(name_of(AFZ_ROOT_CGROUP, AFZ_OPEN_PLACE, "mine").p,
                            run(afz_mask_cgroup_path, TEXT("mine")).p);
        assert_string_equal(name_of(AFZ_ROOT_DEV, AFZ_OPEN_LINK, "mapper/acme-data").p,
                            run(afz_mask_path, TEXT("mapper/acme-data")).p);
        snprintf(want, sizeof want, "class/net/%s/speed", run(afz_mask_word, TEXT("acme0")).p);
        assert_string_equal(name_of(AFZ_ROOT_SYS, AFZ_OPEN_FILE, "class/net/acme0/speed").p, want);
        assert_string_equal(name_of(AFZ_ROOT_SYS, AFZ_OPEN_FILE, "class/net/enp0s3/speed").p,
                            "class/net/enp0s3/speed");
        assert_hidden(name_of(AFZ_ROOT_SYS, AFZ_OPEN_DIR,
                              "class/power_supply/hid-11:22:33:44:55:66-battery"),
                      "11:22");
        assert_string_equal(name_of(AFZ_ROOT_PROC, AFZ_OPEN_FILE, "42/task/43/stat").p,
                            "42/task/43/stat");
}

static int mask_file(enum afz_root root, const char *path, const char *text, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        int r = afz_mask_file(&mask, root, path, afz_span_str(text), &out);
        buf[out.len] = '\0';
        return r;
}

static void test_which_file_gets_which_mask(void **state)
{
        (void)state;
        static const struct {
                enum afz_root root;
                const char *path, *text, *want;
                int r;
        } rows[] = {
                {AFZ_ROOT_PROC, "meminfo", "MemTotal: 1 kB\n", "MemTotal: 1 kB\n", 0},
                {AFZ_ROOT_PROC, "pressure/memory", "some\n", "some\n", 0},
                {AFZ_ROOT_PROC, "42/statm", "1 2 3\n", "1 2 3\n", 0},
                {AFZ_ROOT_PROC, "42/comm", "sh\n", "sh\n", 0},
                {AFZ_ROOT_PROC, "42/environ", "KEY=SECRET", "", 0},
                {AFZ_ROOT_PROC, "self/environ", "KEY=SECRET", "", 0},
                {AFZ_ROOT_PROC, "42/fdinfo/3", "pos:\t0\nx:SECRET\n", "pos:\t0\n", 0},
                {AFZ_ROOT_PROC, "42/cgroup", "0::/user.slice\n", "0::/user.slice\n", 0},
                {AFZ_ROOT_PROC, "net/dev", "  lo: 1\neth0:2\n", "lo: 1\neth0:2\n", 0},
                {AFZ_ROOT_PROC, "sys/kernel/osrelease", "6.1.0-18-amd64\n", "6.1.0-18-amd64\n", 0},
                /* What nobody thought about is left out. */
                {AFZ_ROOT_PROC, "42/maps", "SECRET", "", -EPERM},
                {AFZ_ROOT_PROC, "42/task/43/maps", "SECRET", "", -EPERM},
                {AFZ_ROOT_PROC, "cmdline", "SECRET", "", -EPERM},
                {AFZ_ROOT_PROC, "sys/kernel/hostname", "SECRET", "", -EPERM},
                {AFZ_ROOT_DEV, "sda", "SECRET", "", -EPERM},
                {AFZ_ROOT_DEV, "kmsg", "6,1,2,-;SECRET\n", "", 0},
                {AFZ_ROOT_SYS, "class/net/eth0/address", "SECRET", "", 0},
                {AFZ_ROOT_SYS, "class/power_supply/BAT0/serial_number", "SECRET", "", 0},
                {AFZ_ROOT_SYS, "class/power_supply/BAT0/uevent", "A=1\nPOWER_SERIAL=SECRET\n",
                 "A=1\n", 0},
                {AFZ_ROOT_SYS, "block/sda/size", "7\n", "7\n", 0},
                {AFZ_ROOT_CGROUP, "memory.max", "max\n", "max\n", 0},
        };
        char buf[512];
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                int r = mask_file(rows[i].root, rows[i].path, rows[i].text, buf, sizeof buf);
                if (r != rows[i].r || strcmp(buf, rows[i].want) != 0)
                        fail_msg("%s: %d '%s'", rows[i].path, r, buf);
        }
        assert_int_equal(mask_file(AFZ_ROOT_PROC, "net/dev", "acme0: 1\nSECRET", buf, sizeof buf),
                         0);
        assert_null(strstr(buf, "acme"));
        assert_null(strstr(buf, "SECRET"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hash_is_siphash),
                cmocka_unit_test(test_same_word_same_mask_other_key_other_mask),
                cmocka_unit_test(test_no_secret_survives),
                cmocka_unit_test(test_no_secret_survives_a_cut),
                cmocka_unit_test(test_command_lines),
                cmocka_unit_test(test_environ_keeps_numbers_of_ranks),
                cmocka_unit_test(test_roles_stay),
                cmocka_unit_test(test_comm_is_as_long_as_before),
                cmocka_unit_test(test_stat_parses_as_before),
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_mounts_fit_paths),
                cmocka_unit_test(test_mountstats_parse_as_before),
                cmocka_unit_test(test_cgroups),
                cmocka_unit_test(test_names_fit_texts),
                cmocka_unit_test(test_which_file_gets_which_mask),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
