#ifndef AFZ_USER_FRAME_H
#define AFZ_USER_FRAME_H
/* Whose code a frame is: of the user, who can change it; of a library; or of the runtime below
 * (libc, an allocator, the interpreter), which says nothing. By paths alone.
 */
#include <stdbool.h>
#include <stddef.h>

enum afz_frame_owner {
        AFZ_FRAME_OF_USER,
        AFZ_FRAME_OF_LIBRARY,
        AFZ_FRAME_OF_RUNTIME,
        AFZ_FRAME_OWNERS
};

/* Of a Python file, as its code object names it. */
enum afz_frame_owner afz_frame_owner_python(const char *file);

/* Whether that is the interpreter importing a module; or what starts a package by its name: python
 * -m, or the script that is installed for it ("/opt/env/bin/torchrun"). */
bool afz_frame_is_import(const char *file);
bool afz_frame_is_start(const char *file);

/* Of a file in an installed package, the length of the package's own folder's path; 0: it is in
 * none. Whoever installs their program and starts it by its name has no other code. */
size_t afz_frame_package(const char *file);

/* Of native code: the program or library that it is in, its source file and its function ("": not
 * known). */
enum afz_frame_owner afz_frame_owner_native(const char *module, const char *source,
                                            const char *function);

#endif
