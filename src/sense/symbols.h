#ifndef AFZ_SYMBOLS_H
#define AFZ_SYMBOLS_H
/* Names and lines of native code, from the files of programs and libraries: a path and an address
 * in it become a function, a file and a line, and what was inlined there.
 *
 * Functions are read from the file's own table (elf_symbols.h), lines by libdw where there are any
 * (symbol_lines.h). Allocates, and reads files as large as they are: for a process of its own that
 * may be killed. Symbol files that lie elsewhere, perhaps on a server, are not asked for.
 */
#include <stddef.h>
#include <stdint.h>

/* Of one address; more are left out, the outermost stays. From a vector's memory to the line that
 * made the vector it is eight and more in C++. */
enum { AFZ_SYMBOL_INLINES = 32 };

struct afz_symbol {
        char function[128]; /* as it is written where that is known ("ns::load(int)"); "": not */
        char file[160];     /* of the line, as the compiler wrote it; "": not known */
        uint32_t line;      /* 0: not known */
};

struct afz_symbols;

/* -ENOMEM. */
int afz_symbols_new(struct afz_symbols **ret);
void afz_symbols_free(struct afz_symbols *symbols); /* NULL is fine */

/* A module of a program: where its file lies, and the build id that it had when it was loaded (0
 * bytes: it had none). A file that is another one by now is not believed. */
struct afz_symbol_module {
        const char *path;
        const unsigned char *build_id;
        size_t build_id_bytes;
};

/* What is at an address of a file, innermost first; how many (0: nothing is known). `address` is
 * the file's own, inside the instruction that is meant (of a return address: one less). */
int afz_symbols_find(struct afz_symbols *symbols, const struct afz_symbol_module *module,
                     uint64_t address, struct afz_symbol *ret, size_t cap);

#endif
