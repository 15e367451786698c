/* A batch of Arrow whose structures a stranger has filled in: whatever is taken for one that holds
 * together is read, out of buffers that have just the entries it tells of. How many those are is
 * the one thing that cannot be checked. */
#include "arrow_take.h"
#include "loader_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES = 6, ENTRIES_MOST = 1 << 12 };

/* 0: the table; 1: numbers; 2: lists of lists of numbers (3, 4); 5: bits. */
struct table {
        struct afz_arrow_schema schema[NODES], *of_schema[NODES][3];
        struct afz_arrow_array array[NODES], *of_array[NODES][3];
        const void *buffers[NODES][3];
        uint8_t *heap[2 * NODES];
        int heaps;
};

static const struct afz_field fields[] = {
        {.name = "x", .dtype = AFZ_F32, .dimensions = 1, .shape = {2}, .bytes = 8},
        {.name = "l", .dtype = AFZ_I64, .dimensions = 2, .shape = {2, 3}, .bytes = 48},
};
static const struct afz_source_column columns[] = {
        {.name = "a", .field = 0, .at = 0, .numbers = 1},
        {.name = "b", .field = 0, .at = 1, .numbers = 1},
        {.name = "l", .field = 1, .at = 0, .numbers = 6},
};

static void link_child(struct table *t, int of, int child)
{
        t->of_schema[of][t->schema[of].n_children++] = &t->schema[child];
        t->of_array[of][t->array[of].n_children++] = &t->array[child];
        t->schema[of].children = t->of_schema[of];
        t->array[of].children = t->of_array[of];
}

static void make(struct table *t)
{
        static const char *const formats[NODES] = {"+s", "f", "+w:2", "+w:3", "l", "b"};
        static const char *const names[NODES] = {"", "a", "l", "item", "item", "b"};
        static const int64_t rows[NODES] = {8, 8, 8, 16, 48, 8};
        *t = (struct table){0};
        for (int i = 0; i < NODES; i++) {
                t->schema[i].format = formats[i], t->schema[i].name = names[i];
                t->array[i].length = rows[i];
                t->array[i].n_buffers = formats[i][0] == '+' ? 1 : 2;
                t->array[i].buffers = t->buffers[i];
        }
        link_child(t, 0, 1), link_child(t, 0, 2), link_child(t, 0, 5);
        link_child(t, 2, 3), link_child(t, 3, 4);
}

static int64_t number(uint8_t byte)
{
        static const int64_t odd[] = {-1, INT64_MAX, INT64_MIN, INT64_MAX / 2, 1 << 20, -2, 47, 96};
        return byte < 128 ? byte : odd[byte % 8];
}

/* Which structure, which member, what. */
static void change(struct table *t, const uint8_t *three)
{
        static const char *const words[] = {"f", "g", "b",    "l",    "c",  "e",
                                            "u", "",  "+w:1", "+w:6", "+s", "+w:9999999999999999"};
        struct afz_arrow_schema *schema = &t->schema[three[0] % NODES];
        struct afz_arrow_array *array = &t->array[three[0] % NODES];
        switch (three[1] % 14) {
        case 0:
                array->length = number(three[2]);
                break;
        case 1:
                array->offset = number(three[2]);
                break;
        case 2:
                array->null_count = number(three[2]);
                break;
        case 3:
                array->n_buffers = number(three[2]);
                break;
        case 4:
                array->n_children = number(three[2]);
                break;
        case 5:
                array->buffers = NULL;
                break;
        case 6:
                array->children = NULL;
                break;
        case 7:
                t->of_array[three[0] % NODES][three[2] % 3] = NULL;
                break;
        case 8:
                array->dictionary = array;
                break;
        case 9:
                schema->format = words[three[2] % 12];
                break;
        case 10:
                schema->name = three[2] & 1 ? NULL : words[three[2] % 12];
                break;
        case 11:
                schema->n_children = three[2] % 2 ? -1 : three[2] % 3;
                break;
        case 12:
                schema->dictionary = schema;
                break;
        case 13:
                t->of_schema[three[0] % NODES][three[2] % 3] = NULL;
                break;
        }
}

/* False: more entries than anyone has memory for. */
static bool fill(struct table *t, bool has_bits)
{
        for (int i = 0; i < NODES; i++) {
                const struct afz_arrow_array *a = &t->array[i];
                if (a->length < 0 || a->offset < 0 || a->length > ENTRIES_MOST ||
                    a->offset > ENTRIES_MOST)
                        return false;
                size_t entries = (size_t)(a->length + a->offset);
                const char *format = t->schema[i].format;
                size_t each = *format == 'l' || *format == 'g' ? 8
                              : *format == 'f'                 ? 4
                              : *format == 'e'                 ? 2
                                                               : 1;
                size_t bits = (entries + 7) / 8, bytes = *format == 'b' ? bits : entries * each;
                if (has_bits) {
                        t->heap[t->heaps] = malloc(bits);
                        memset(t->heap[t->heaps], 0x5a, bits);
                        t->buffers[i][0] = t->heap[t->heaps++];
                }
                t->heap[t->heaps] = malloc(bytes);
                memset(t->heap[t->heaps], 7, bytes);
                t->buffers[i][1] = t->heap[t->heaps++];
        }
        return true;
}

static void take(struct table *t, const struct afz_arrow_column *found)
{
        uint64_t rows = (uint64_t)t->array[0].length;
        struct afz_arrow_absent absent = {0};
        struct afz_load load = {.count = (uint32_t)rows};
        load.bad = calloc(rows, 1);
        for (int i = 0; i < 2; i++)
                load.field[i] = calloc(rows, fields[i].bytes);
        for (int is_nan = 0; is_nan < 2; is_nan++)
                for (uint64_t from = 0; from < rows; from = from ? rows : 1)
                        afz_arrow_take(&t->array[0], found, 3, is_nan, from, &load, from,
                                       rows - from, &absent);
        require(!absent.column || absent.row < rows);
        for (int i = 0; i < 2; i++)
                free(load.field[i]);
        free(load.bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct table t;
        const struct afz_source source = {
                .fields = 2, .columns = 3, .field = fields, .column = columns};
        struct afz_arrow_column found[3];
        char why[AFZ_WHY_MAX] = "";
        if (size == 0)
                return 0;
        make(&t);
        for (size_t i = 1; i + 3 <= size; i += 3)
                change(&t, data + i);
        int r = afz_arrow_find(&t.schema[0], &source, fields, "f", found, why);
        require(r == 0 || *why);
        bool is_real = fill(&t, data[0] & 1);
        if (r == 0 && !afz_arrow_check(&t.array[0], found, 3) && is_real)
                take(&t, found);
        while (t.heaps > 0)
                free(t.heap[--t.heaps]);
        return 0;
}
