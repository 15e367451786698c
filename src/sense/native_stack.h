#ifndef AFZ_NATIVE_STACK_H
#define AFZ_NATIVE_STACK_H
/* The native frames of a thread that sleeps, from the stack pointer and the program counter that
 * the kernel tells (thread_look.h) and copies of its stack: it is neither stopped nor traced.
 *
 * Unwinding and names are elfutils' work (libdw), which is loaded when the first process is opened
 * and only where the build had its header. It allocates, reads the files of the program, and is
 * large: this is for a process of its own that may be killed.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { AFZ_NATIVE_FRAMES = 24 };

struct afz_native_frame {
        char function[96]; /* as the linker knows it; "": not known */
        char module[48];   /* "libc.so.6" */
};

struct afz_native;

/* -ENOTSUP: this build, or this machine, has no libdw; -EPERM, -ESRCH: as the kernel says. */
int afz_native_open(pid_t pid, struct afz_native **ret);

/* Frames of a thread that waits with these registers, innermost first; returns how many. What
 * cannot be unwound any further ends there. */
int afz_native_thread(struct afz_native *native, pid_t tid, uint64_t sp, uint64_t pc,
                      struct afz_native_frame *ret, size_t cap);

void afz_native_close(struct afz_native *native);

#endif
