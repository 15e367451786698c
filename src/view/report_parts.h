#ifndef AFZ_REPORT_PARTS_H
#define AFZ_REPORT_PARTS_H
/* The report's parts, for each other only: a file each, put one below the other by report.c. */
#include "out.h"
#include "report.h"
#include "report_line.h"

/* ---- words and figures (report_text.c) ---- */

enum { AFZ_REPORT_TEXT_CAP = 48 };

enum afz_report_unit {
        AFZ_REPORT_BYTES,
        AFZ_REPORT_PER_S,   /* bytes a second */
        AFZ_REPORT_PERCENT, /* 1 is 100 % */
        AFZ_REPORT_CORES,
        AFZ_REPORT_SECONDS,
        AFZ_REPORT_UNITS
};

/* A text of anyone's, made harmless for HTML, in or outside of quotes: at most `most` bytes of it,
 * "…" behind what is cut. What is no UTF-8, no character or turns the direction is U+FFFD. */
void afz_report_text(struct afz_out *out, const char *text, size_t most);
/* The same as a JSON string inside a <script>: '<', '>' and '&' are written as \u003c, ... */
void afz_report_json_text(struct afz_out *out, const char *text, size_t most);

/* "3.9 GB", "97 %", "1.5 cores", "210 MB/s", "1.3 s" */
char *afz_report_value(char buf[AFZ_REPORT_TEXT_CAP], enum afz_report_unit unit, double value);
/* "12.4 s", "3 min 20 s" */
char *afz_report_time(char buf[AFZ_REPORT_TEXT_CAP], uint64_t ms);
/* "0", "0.2 GB", "50 %": a round value on an axis that reaches to `most`, which gives the unit */
char *afz_report_tick(char buf[AFZ_REPORT_TEXT_CAP], enum afz_report_unit unit, double value,
                      double most);

/* A round distance such that at most `ticks` of them reach `most`. */
double afz_report_step(enum afz_report_unit unit, double most, unsigned ticks);
/* Of times: 1, 2, 5, 10, 15, 30 s, min; 1, 2, 3, 6, 12 h; days. */
uint64_t afz_report_time_step(uint64_t span_ms, unsigned ticks);
/* "40 s", "1:30", "2 h", with this step. */
char *afz_report_time_tick(char buf[AFZ_REPORT_TEXT_CAP], uint64_t ms, uint64_t step_ms);

bool afz_report_has(uint64_t bytes); /* neither 0 nor UINT64_MAX: it is known, or there is one */

/* ---- what happened (report_events.c) ---- */

enum afz_report_sort { /* from quiet to loud; report.css has a colour for each */
                       AFZ_REPORT_NOTE,
                       AFZ_REPORT_SAVE,
                       AFZ_REPORT_WARN,
                       AFZ_REPORT_STOP,
                       AFZ_REPORT_SORTS
};

struct afz_report_event {
        uint32_t t_ms, to_ms; /* to: where it lasted, else t */
        uint32_t times;       /* so many of the same, close together */
        uint32_t braked_ms;   /* of those, how long the job stood */
        enum afz_report_sort sort;
        const char *word; /* "brake"; in a text of the flight's it ends at ": " */
        const char *text; /* borrowed from the flight, or a constant */
        char own[120];    /* "", or instead of the text */
};

/* Beyond this many they are counted, not told. The last ones are the ones that matter. */
enum { AFZ_REPORT_EVENTS = 160 };

struct afz_report_events {
        size_t count, left_out;
        struct afz_report_event event[AFZ_REPORT_EVENTS];
};

void afz_report_events_find(struct afz_report_events *ret, const struct afz_flight *flight);
/* Numbers over the time line; those that would lie upon one another are one. */
void afz_report_events_lane(struct afz_out *out, const struct afz_report_events *events,
                            uint32_t end_ms);
/* Hairlines and brake spans inside a plot of this height. */
void afz_report_events_lines(struct afz_out *out, const struct afz_report_events *events,
                             uint32_t end_ms, unsigned top, unsigned height);
void afz_report_events_list(struct afz_out *out, const struct afz_report_events *events);

/* ---- the time line (report_panel.c finds, report_plot.c draws) ---- */

enum { AFZ_REPORT_SERIES = 10, AFZ_REPORT_PANELS = 9 };

struct afz_report_series {
        char name[80];
        const char *paint; /* class of report.css: "c1" */
        bool limit;        /* a line not to be crossed: dashed, and no part of the peaks */
        bool stacked;      /* an area that lies on those before it */
        struct afz_report_line line;
};

struct afz_report_panel {
        const char *id, *title, *what;
        enum afz_report_unit unit;
        unsigned height; /* pixels */
        unsigned count;
        struct afz_report_series *series[AFZ_REPORT_SERIES];
        double most, step; /* of the axis */
};

struct afz_report_picture {
        uint32_t end_ms;
        unsigned count;
        struct afz_report_panel panel[AFZ_REPORT_PANELS];
        struct afz_report_events events;
};

int afz_report_picture_make(const struct afz_report *report, struct afz_report_picture **ret);
void afz_report_picture_free(struct afz_report_picture *picture);
/* A series of a panel, whether or not there is room; NULL: no room, or no memory. */
struct afz_report_series *afz_report_series_add(struct afz_report_panel *panel, const char *name,
                                                const char *paint, uint32_t end_ms);
void afz_report_series_drop(struct afz_report_panel *panel); /* the last one */
/* What each line of the program held, over time (report_site_lines.c): the largest, and the others
 * together. */
void afz_report_site_lines(struct afz_report_panel *panel, const struct afz_report *report,
                           uint32_t end_ms);
/* Sets most and step by what is in it; `least` is what the axis reaches at least. */
void afz_report_panel_scale(struct afz_report_panel *panel, double least);

/* Paths in a plot: 10 units a bucket, AFZ_REPORT_TALL high. */
enum { AFZ_REPORT_WIDE = 10 * AFZ_REPORT_BUCKETS, AFZ_REPORT_TALL = 1000 };

struct afz_report_frame { /* what is around the paths of one plot */
        const char *id;
        unsigned height;
        enum afz_report_unit unit;
        double most, step;
        uint32_t from_ms, to_ms; /* what the first verdict is about; 0, 0: all of it */
};

/* Opens the SVG, with its grid; `words` says the same to who cannot see. Paths follow. */
void afz_report_plot_open(struct afz_out *out, const struct afz_report_picture *picture,
                          const struct afz_report_frame *frame, const char *words);
/* The paths are done: labels and events lie over them. */
void afz_report_plot_over(struct afz_out *out, const struct afz_report_picture *picture,
                          const struct afz_report_frame *frame);
/* After that: a text at the right edge, at the height of a value. */
void afz_report_plot_label(struct afz_out *out, const struct afz_report_frame *frame, double value,
                           const char *text);
void afz_report_plot_close(struct afz_out *out);
/* What is between least and most of each bucket; and all below the mean. In a plot whose axis ends
 * at `most`. */
void afz_report_plot_line(struct afz_out *out, const struct afz_report_line *line, double most,
                          const char *paint);
void afz_report_plot_band(struct afz_out *out, const struct afz_report_line *line, double most,
                          const char *paint);
void afz_report_plot_area(struct afz_out *out, const struct afz_report_line *line, double most,
                          const char *paint);

/* What lies between two lines of AFZ_REPORT_BUCKETS values each. */
void afz_report_plot_layer(struct afz_out *out, const double *low, const double *high, double most,
                           const char *paint);

/* What of the run the first verdict is about; false: nearly all of it, or there is none. */
bool afz_report_range(const struct afz_report *report, uint32_t *ret_from_ms, uint32_t *ret_to_ms);

void afz_report_timeline(struct afz_out *out, const struct afz_report *report,
                         const struct afz_report_picture *picture);

/* ---- the other sections ---- */

void afz_report_verdicts(struct afz_out *out, const struct afz_report *report);
void afz_report_figures(struct afz_out *out, const struct afz_report *report,
                        const struct afz_report_picture *picture);
void afz_report_ledger_put(struct afz_out *out, const struct afz_report *report,
                           const struct afz_report_picture *picture);
void afz_report_uses_put(struct afz_out *out, const struct afz_report *report);
int afz_report_processes(struct afz_out *out, const struct afz_report *report,
                         const struct afz_report_picture *picture);
void afz_report_sites(struct afz_out *out, const struct afz_report *report);
void afz_report_flame(struct afz_out *out, const struct afz_report *report);
void afz_report_stacks(struct afz_out *out, const struct afz_report *report);
void afz_report_facts(struct afz_out *out, const struct afz_report *report);
/* What the script needs: the lines, as JSON. */
void afz_report_data(struct afz_out *out, const struct afz_report *report,
                     const struct afz_report_picture *picture);

/* ---- report.css and report.js (made by report_embed.py) ---- */
extern const char afz_report_css[], afz_report_js[];
extern const char afz_report_css_sha256[], afz_report_js_sha256[]; /* base64, for the policy */

#endif
