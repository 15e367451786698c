#ifndef AFZ_LIVE_PARTS_H
#define AFZ_LIVE_PARTS_H
/* What the panels of the live view share. Private to live*.c. */
#include "figure.h"
#include "live.h"

struct afz_rect {
        int x, y, w, h;
};

/* A frame in the making: the newest samples that several panels look at; NULL: not known. */
struct afz_frame {
        struct afz_screen *screen;
        const struct afz_window *window;
        struct afz_live_state *state;
        const struct afz_sample *host, *psi, *cpu, *job, *self;
        unsigned gpus; /* MIG instances are not counted */
        bool ended;    /* there was a job, and it is over */
};

/* How much room a panel asks for. */
enum afz_room { AFZ_ROOM_LEAST, AFZ_ROOM_GOOD, AFZ_ROOM_AMPLE, AFZ_ROOM_LAVISH, AFZ_ROOMS };

struct afz_panel {
        const char *title;
        /* Rows it can use at this width; 0: it has nothing to show. */
        int (*rows)(const struct afz_frame *frame, int width, enum afz_room room);
        void (*draw)(const struct afz_frame *frame, struct afz_rect at);
        /* Words for the right end of its title's rule; NULL: it has none to say. */
        void (*aside)(const struct afz_frame *frame, int width, struct afz_out *out);
};

extern const struct afz_panel afz_panel_memory, afz_panel_gpu, afz_panel_cpu, afz_panel_history,
        afz_panel_disk, afz_panel_events, afz_panel_lines, afz_panel_uses, afz_panel_tree;

/* Where a value stops being fine. The table is in live_parts.c, with the reasons. */
enum afz_band {
        AFZ_BAND_RAM,
        AFZ_BAND_SWAP_RATE,
        AFZ_BAND_SHM,
        AFZ_BAND_VRAM,
        AFZ_BAND_PSI_CPU,
        AFZ_BAND_PSI_MEMORY,
        AFZ_BAND_PSI_IO,
        AFZ_BAND_DISK_BUSY,
        AFZ_BAND_DISK_FULL,
        AFZ_BAND_HEAT,
        AFZ_BANDS
};

/* `fine`, or the colour of a warning. */
enum afz_color afz_band_color(enum afz_band band, double value, enum afz_color fine);

/* A counter of ns as a share of the time that passed: 1.0 is all of it. */
bool afz_live_share(const struct afz_frame *frame, const struct afz_sample *sample,
                    enum afz_metric metric, double *ret);

/* Columns that the rows of several panels have in common: label, bar, value, and a tail of words.
 */
enum { AFZ_LABEL_COLUMNS = 10 };

struct afz_columns {
        int bar_x, bar_w, value_x, value_w, tail_x, tail_w; /* tail_w 0: no room for words */
};

struct afz_columns afz_live_columns(struct afz_rect at);

void afz_live_label(const struct afz_frame *frame, int x, int y, const char *label);

/* "9.8G / 15.5G", right-aligned; an absent part is "–". */
void afz_live_used_of(const struct afz_frame *frame, const struct afz_columns *c, int y,
                      const uint64_t *used, const uint64_t *total, enum afz_color color);

/* A row of "word figure  word figure" from x on, kept within end; returns where it ended. */
int afz_live_pair(const struct afz_frame *frame, int x, int y, int end, const char *word,
                  const char *figure, enum afz_color color);

/* A title on a rule, with words at its right end. */
void afz_live_rule(const struct afz_frame *frame, int x, int y, int w, const char *title,
                   const char *aside);

struct afz_part {
        double amount;
        enum afz_color color;
};

/* A bar of parts that stand side by side; total 0: an empty track. mark < 0: no mark. */
struct afz_bar {
        const struct afz_part *part;
        unsigned parts;
        double total, mark;
        enum afz_color mark_color;
};

void afz_live_bar(const struct afz_frame *frame, int x, int y, int w, const struct afz_bar *bar);

/* One value of 0 to 1 as a bar. */
void afz_live_gauge_bar(const struct afz_frame *frame, int x, int y, int w, double share,
                        enum afz_color color);

/* One cell of height 1 to 7 for a share of 0 to 1. */
const char *afz_live_step(double share);

/* The recent past, newest at the right, h rows high, gaps left empty. */
struct afz_strip_look {
        double full; /* the value of full height */
        enum afz_color color;
        enum afz_band band; /* AFZ_BANDS: one colour throughout */
        double band_unit;   /* value of 1.0 in the band */
};

void afz_live_strip(const struct afz_frame *frame, struct afz_rect at,
                    const struct afz_series *series, const struct afz_strip_look *look);

/* A process's command line without the folders of its program, newlines as blanks. Returns buf. */
const char *afz_live_command(const struct afz_sample *proc, char *buf, size_t cap);

/* Pages and overlays. */
void afz_live_draw_info(const struct afz_frame *frame, struct afz_rect at);
void afz_live_draw_gpus(const struct afz_frame *frame, struct afz_rect at);
void afz_live_draw_lines(const struct afz_frame *frame, struct afz_rect at);
void afz_live_draw_help(const struct afz_frame *frame, struct afz_rect at);

int afz_live_event_line(const struct afz_frame *frame, int x, int y, int w,
                        const struct afz_event *event);

#endif
