#ifndef AFZ_USER_FRAME_H
#define AFZ_USER_FRAME_H
/* Whose code a frame is: of the user, who can change it; of a library; or of the runtime below
 * (libc, an allocator, the interpreter), which says nothing. By paths alone.
 */
enum afz_frame_owner {
        AFZ_FRAME_OF_USER,
        AFZ_FRAME_OF_LIBRARY,
        AFZ_FRAME_OF_RUNTIME,
        AFZ_FRAME_OWNERS
};

/* Of a Python file, as its code object names it. */
enum afz_frame_owner afz_frame_owner_python(const char *file);

/* Of native code: the program or library that it is in, its source file and its function ("": not
 * known). */
enum afz_frame_owner afz_frame_owner_native(const char *module, const char *source,
                                            const char *function);

#endif
