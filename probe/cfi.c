#include "cfi.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* DWARF's numbers of the three registers. */
#if defined(__aarch64__)
enum { REG_FP = 29, REG_SP = 31, REG_RA = 30 };
#else
enum { REG_FP = 6, REG_SP = 7, REG_RA = 16 };
#endif

enum {
        DEPTH = 8,         /* of remembered states */
        FAR_BYTES = 32000, /* from a frame's end to where registers are saved */
        OP_DEREF = 0x06,
        OP_BREG0 = 0x70, /* with the register's number added */
        BY_DEREF = 1000, /* in place of a register's number: the CFA is read from memory */
};

/* How pointers are written: DW_EH_PE_*. */
enum {
        PE_ABSPTR = 0x00,
        PE_UDATA4 = 0x03,
        PE_UDATA8 = 0x04,
        PE_SDATA4 = 0x0b,
        PE_SDATA8 = 0x0c,
        PE_PCREL = 0x10,
        PE_DATAREL = 0x30,
};

uint64_t afz_cfi_pack(const struct afz_cfi_rule *rule, uint16_t tag)
{
        return (uint64_t)(tag & 0x1fff) << 51 | (uint64_t)rule->kind << 48 |
               (uint64_t)(uint32_t)(rule->cfa & 0x3fffff) << 26 |
               (uint64_t)((uint32_t)(rule->ra / 8) & 0x1fff) << 13 |
               (uint64_t)((uint32_t)(rule->fp / 8) & 0x1fff);
}

static int16_t signed13(uint64_t bits)
{
        int value = (int)(bits & 0x1fff);
        return (int16_t)((value >= 0x1000 ? value - 0x2000 : value) * 8);
}

bool afz_cfi_unpack(uint64_t packed, uint16_t tag, struct afz_cfi_rule *ret)
{
        if (packed >> 51 != (tag & 0x1fff))
                return false;
        int cfa = (int)(packed >> 26 & 0x3fffff);
        *ret = (struct afz_cfi_rule){.kind = (enum afz_cfi_kind)(packed >> 48 & 7),
                                     .cfa = cfa >= 0x200000 ? cfa - 0x400000 : cfa,
                                     .ra = signed13(packed >> 13),
                                     .fp = signed13(packed)};
        return true;
}

/* ---- reading ---- */

/* A copy of some bytes of the module; everything past its end reads as 0 and is seen as bad. */
struct bytes {
        uint64_t at; /* where the copy came from */
        const unsigned char *data;
        size_t size, next;
        bool bad;
        bool cut; /* there is more of it */
};

static uint64_t take(struct bytes *b, size_t n)
{
        uint64_t value = 0;
        if (b->size - b->next < n) {
                b->bad = true;
                b->next = b->size;
                return 0;
        }
        memcpy(&value, b->data + b->next, n); /* both machines are little-endian */
        b->next += n;
        return value;
}

static uint64_t take_uleb(struct bytes *b)
{
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
                uint64_t byte = take(b, 1);
                value |= (byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        return value;
        }
        b->bad = true;
        return 0;
}

static int64_t take_sleb(struct bytes *b)
{
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
                uint64_t byte = take(b, 1);
                value |= (byte & 0x7f) << shift;
                if (byte & 0x80)
                        continue;
                if ((byte & 0x40) && shift + 7 < 64)
                        value |= ~UINT64_C(0) << (shift + 7);
                return (int64_t)value;
        }
        b->bad = true;
        return 0;
}

static uint64_t take_pointer(struct bytes *b, uint8_t encoding, uint64_t data_base)
{
        uint64_t from = b->at + b->next, value;
        switch (encoding & 0x0f) {
        case PE_ABSPTR:
        case PE_SDATA8:
        case PE_UDATA8:
                value = take(b, 8);
                break;
        case PE_UDATA4:
                value = take(b, 4);
                break;
        case PE_SDATA4:
                value = (uint64_t)(int64_t)(int32_t)(uint32_t)take(b, 4);
                break;
        default:
                b->bad = true;
                return 0;
        }
        switch (encoding & 0x70) {
        case 0:
                return value;
        case PE_PCREL:
                return value + from;
        case PE_DATAREL:
                return value + data_base;
        default:
                b->bad = true;
                return 0;
        }
}

/* ---- the table's index ---- */

/* The FDE that may cover pc, from the sorted table behind .eh_frame_hdr; 0: none. */
static uint64_t find_fde(struct afz_cfi_source *s, uint64_t hdr, uint64_t end, uint64_t pc)
{
        unsigned char head[12];
        uint32_t count;
        if (s->read(s->context, hdr, head, sizeof head) != sizeof head || head[0] != 1 ||
            head[1] != (PE_PCREL | PE_SDATA4) || head[2] != PE_UDATA4 ||
            head[3] != (PE_DATAREL | PE_SDATA4)) /* as every linker writes it */
                return 0;
        memcpy(&count, head + 8, sizeof count);
        if (end < hdr || count > (end - hdr) / 8)
                return 0;
        uint64_t low = 0, high = count;
        int32_t row[2];
        while (low < high) {
                uint64_t middle = (low + high) / 2;
                if (s->read(s->context, hdr + 12 + middle * 8, row, sizeof row) != sizeof row)
                        return 0;
                if (hdr + (uint64_t)(int64_t)row[0] <= pc)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0 ||
            s->read(s->context, hdr + 12 + (low - 1) * 8, row, sizeof row) != sizeof row)
                return 0;
        return hdr + (uint64_t)(int64_t)row[1];
}

/* One CIE or FDE, copied; the cursor stands behind its length. */
static bool open_entry(struct afz_cfi_source *s, uint64_t at, uint64_t base, uint64_t end,
                       unsigned char *room, struct bytes *ret)
{
        uint32_t length;
        if (at < base || at >= end ||
            s->read(s->context, at, &length, sizeof length) != sizeof length || length < 4 ||
            length > end - at)
                return false;
        size_t size = length < AFZ_CFI_ENTRY - 4 ? length + 4u : AFZ_CFI_ENTRY;
        *ret = (struct bytes){.at = at, .data = room, .next = 4, .cut = size < length + 4ull};
        ret->size = s->read(s->context, at, room, size);
        return ret->size == size;
}

/* ---- the program ---- */

struct row {
        uint64_t cfa_register;
        int64_t cfa;
        int64_t ra, fp; /* from the CFA; 0: not saved */
        bool fp_at_fp;  /* the caller's lies where the frame pointer points to */
        bool lost;      /* where they are cannot be told */
};

struct machine {
        struct row now, first, kept[DEPTH];
        unsigned depth;
        uint64_t code_align;
        int64_t data_align;
        uint64_t at, pc; /* the row at `at` holds until the next advance; we want pc's */
        uint8_t encoding;
        bool signal;
};

/* Numbers of a table may be anything; they wrap, and what is out of range is refused at the end. */
static int64_t times(int64_t a, int64_t b)
{
        return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void set_register(struct row *row, uint64_t reg, int64_t offset)
{
        if (reg == REG_RA)
                row->ra = offset;
        else if (reg == REG_FP) {
                row->fp = offset;
                row->fp_at_fp = false;
        }
}

static void restore(struct machine *m, uint64_t reg)
{
        if (reg == REG_RA)
                m->now.ra = m->first.ra;
        else if (reg == REG_FP) {
                m->now.fp = m->first.fp;
                m->now.fp_at_fp = m->first.fp_at_fp;
        }
}

static void skip_block(struct bytes *b)
{
        uint64_t n = take_uleb(b);
        if (n > b->size - b->next)
                b->bad = true;
        else
                b->next += (size_t)n;
}

static void lose_register(struct row *row, uint64_t reg)
{
        if (reg == REG_RA || reg == REG_FP)
                row->lost = true;
}

/* The one expression that compilers write for ordinary code: the frame pointer plus an offset, with
 * `deref` read from there. Steps over it, whatever it is. */
static bool take_expression(struct bytes *b, bool deref, int64_t *ret_offset)
{
        struct bytes e = *b;
        skip_block(b);
        uint64_t size = take_uleb(&e);
        size_t from = e.next;
        bool ours = take(&e, 1) == OP_BREG0 + REG_FP;
        *ret_offset = take_sleb(&e);
        if (deref)
                ours = take(&e, 1) == OP_DEREF && ours;
        return ours && !e.bad && e.next - from == size;
}

static void set_by_expression(struct row *row, struct bytes *b, uint64_t reg)
{
        int64_t offset;
        if (take_expression(b, false, &offset) && reg == REG_FP && offset == 0)
                row->fp_at_fp = true;
        else
                lose_register(row, reg);
}

/* Where the frame ends. False: not what this instruction is about. */
static bool set_cfa(struct machine *m, struct bytes *b, unsigned op)
{
        switch (op) {
        case 0x0c: /* def_cfa */
                m->now.cfa_register = take_uleb(b);
                m->now.cfa = (int64_t)take_uleb(b);
                return true;
        case 0x0d: /* def_cfa_register */
                m->now.cfa_register = take_uleb(b);
                return true;
        case 0x0e: /* def_cfa_offset */
                m->now.cfa = (int64_t)take_uleb(b);
                return true;
        case 0x0f: /* def_cfa_expression */
                m->now.cfa_register = take_expression(b, true, &m->now.cfa) ? BY_DEREF : UINT64_MAX;
                return true;
        case 0x12: /* def_cfa_sf */
                m->now.cfa_register = take_uleb(b);
                m->now.cfa = times(take_sleb(b), m->data_align);
                return true;
        case 0x13: /* def_cfa_offset_sf */
                m->now.cfa = times(take_sleb(b), m->data_align);
                return true;
        default:
                return false;
        }
}

/* Instructions above the two top bits: DW_CFA_*. False: none that is known. */
static bool run_extended(struct machine *m, struct bytes *b, unsigned op)
{
        uint64_t reg;
        switch (op) {
        case 0x00: /* nop */
                return true;
        case 0x01: /* set_loc */
                m->at = take_pointer(b, m->encoding, 0);
                return true;
        case 0x02:
        case 0x03:
        case 0x04: /* advance_loc1, 2, 4 */
                m->at += take(b, (size_t)1 << (op - 2)) * m->code_align;
                return true;
        case 0x05: /* offset_extended */
                reg = take_uleb(b);
                set_register(&m->now, reg, times((int64_t)take_uleb(b), m->data_align));
                return true;
        case 0x06: /* restore_extended */
                restore(m, take_uleb(b));
                return true;
        case 0x07: /* undefined: of the return address in the outermost frame */
                reg = take_uleb(b);
                m->now.lost |= reg == REG_RA;
                return true;
        case 0x08: /* same_value */
                set_register(&m->now, take_uleb(b), 0);
                return true;
        case 0x09: /* register */
                lose_register(&m->now, take_uleb(b));
                (void)take_uleb(b);
                return true;
        case 0x0a: /* remember_state */
                if (m->depth == DEPTH)
                        return false;
                m->kept[m->depth++] = m->now;
                return true;
        case 0x0b: /* restore_state */
                if (m->depth == 0)
                        return false;
                m->now = m->kept[--m->depth];
                return true;
        case 0x10: /* expression */
                set_by_expression(&m->now, b, take_uleb(b));
                return true;
        case 0x16: /* val_expression */
                lose_register(&m->now, take_uleb(b));
                skip_block(b);
                return true;
        case 0x11: /* offset_extended_sf */
                reg = take_uleb(b);
                set_register(&m->now, reg, times(take_sleb(b), m->data_align));
                return true;
        case 0x2d: /* arm64: the return address is signed from here on */
                return true;
        case 0x2e: /* GNU_args_size */
                (void)take_uleb(b);
                return true;
        default:
                return set_cfa(m, b, op);
        }
}

static bool run(struct machine *m, struct bytes *b)
{
        while (b->next < b->size && !b->bad) {
                unsigned op = (unsigned)take(b, 1), low = op & 0x3f;
                struct row before = m->now;
                uint64_t at = m->at;
                switch (op >> 6) {
                case 1: /* advance_loc */
                        m->at += low * m->code_align;
                        break;
                case 2: /* offset */
                        set_register(&m->now, low, times((int64_t)take_uleb(b), m->data_align));
                        break;
                case 3: /* restore */
                        restore(m, low);
                        break;
                default:
                        if (!run_extended(m, b, low))
                                return false;
                }
                if (m->at != at && m->at > m->pc) { /* the row before is pc's */
                        m->now = before;
                        return !b->bad;
                }
        }
        return !b->bad && !b->cut; /* what holds to the end is pc's, if this is the end */
}

/* ---- the entries ---- */

/* What follows the alignments, by the letters of the augmentation. */
static bool read_augmentation(struct bytes *b, struct machine *m, const char *letters)
{
        uint64_t size = take_uleb(b);
        if (size > b->size - b->next)
                return false;
        size_t program = b->next + (size_t)size;
        for (const char *a = letters; *a; a++) {
                if (*a == 'R')
                        m->encoding = (uint8_t)take(b, 1);
                else if (*a == 'L')
                        (void)take(b, 1);
                else if (*a == 'P')
                        (void)take_pointer(b, (uint8_t)take(b, 1) & 0x7f, 0);
                else if (*a == 'S') /* a signal's frame: all registers are elsewhere */
                        m->signal = true;
                else if (*a != 'B')
                        return false;
        }
        b->next = program;
        return true;
}

static bool read_cie(struct bytes *b, struct machine *m, bool *ret_sized)
{
        char letters[8] = {0};
        if (take(b, 4) != 0) /* what marks a CIE */
                return false;
        uint64_t version = take(b, 1);
        for (size_t i = 0;; i++) {
                char c = (char)take(b, 1);
                if (b->bad || i == sizeof letters)
                        return false;
                letters[i] = c;
                if (c == '\0')
                        break;
        }
        m->code_align = take_uleb(b);
        m->data_align = take_sleb(b);
        uint64_t ra = version == 1 ? take(b, 1) : take_uleb(b);
        m->encoding = PE_ABSPTR;
        *ret_sized = letters[0] == 'z';
        if (ra != REG_RA || (letters[0] != 'z' && letters[0] != '\0'))
                return false;
        return (!*ret_sized || read_augmentation(b, m, letters + 1)) && !b->bad;
}

static bool is_near(int64_t offset)
{
        return offset % 8 == 0 && offset >= -FAR_BYTES && offset <= FAR_BYTES;
}

static void finish(const struct row *row, struct afz_cfi_rule *ret)
{
        enum afz_cfi_kind kind = row->cfa_register == REG_FP     ? AFZ_CFI_FP
                                 : row->cfa_register == REG_SP   ? AFZ_CFI_SP
                                 : row->cfa_register == BY_DEREF ? AFZ_CFI_DEREF
                                                                 : AFZ_CFI_END;
        *ret = (struct afz_cfi_rule){.kind = AFZ_CFI_END};
        if (row->lost || row->ra == 0 || !is_near(row->ra) || !is_near(row->fp) ||
            row->cfa >= 1 << 21 || row->cfa <= -(1 << 21) ||
            (kind != AFZ_CFI_DEREF && row->cfa <= 0) || row->fp_at_fp != (kind == AFZ_CFI_DEREF))
                return;
        *ret = (struct afz_cfi_rule){.kind = kind,
                                     .cfa = (int32_t)row->cfa,
                                     .ra = (int16_t)row->ra,
                                     .fp = (int16_t)row->fp};
}

int afz_cfi_find(struct afz_cfi_source *s, uint64_t eh_frame_hdr, uint64_t base, uint64_t end,
                 uint64_t pc, struct afz_cfi_rule *ret)
{
        struct bytes fde, cie;
        struct machine m = {.pc = UINT64_MAX, .now.cfa_register = UINT64_MAX};
        bool sized;
        uint64_t at = find_fde(s, eh_frame_hdr, end, pc);
        if (at == 0 || !open_entry(s, at, base, end, s->fde, &fde))
                return -1;
        uint64_t back = take(&fde, 4);
        if (!open_entry(s, at + 4 - back, base, end, s->cie, &cie) || !read_cie(&cie, &m, &sized) ||
            !run(&m, &cie))
                return -1;
        m.first = m.now;
        m.depth = 0;
        m.at = take_pointer(&fde, m.encoding & 0x7f, eh_frame_hdr);
        uint64_t size = take_pointer(&fde, m.encoding & 0x0f, 0);
        if (sized)
                skip_block(&fde);
        if (fde.bad || pc < m.at || pc - m.at >= size)
                return -1;
        m.pc = pc;
        if (m.signal)
                *ret = (struct afz_cfi_rule){.kind = AFZ_CFI_SIGNAL};
        else if (run(&m, &fde))
                finish(&m.now, ret);
        else
                return -1;
        return 0;
}
