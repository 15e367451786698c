#include "count_of.h"
#include "key.h"
#include "live.h"

/* How often to look: steps that people think in. */
static const uint64_t intervals_ms[] = {100, 200, 500, 1000, 2000, 5000, 10000};

enum { INTERVALS = AFZ_COUNT_OF(intervals_ms), CTRL_C = 3, CTRL_L = 12, CTRL_Z = 26 };

static void step_interval(struct afz_live_state *state, bool longer)
{
        uint64_t now = state->interval_ns / 1000000;
        if (longer) {
                for (int i = 0; i < INTERVALS; i++)
                        if (intervals_ms[i] > now) {
                                state->interval_ns = intervals_ms[i] * 1000000;
                                return;
                        }
        } else {
                for (int i = INTERVALS - 1; i >= 0; i--)
                        if (intervals_ms[i] < now) {
                                state->interval_ns = intervals_ms[i] * 1000000;
                                return;
                        }
        }
}

static void turn_to(struct afz_live_state *state, enum afz_live_page page)
{
        state->page = state->page == page ? AFZ_LIVE_MAIN : page;
        state->scroll = 0;
        state->help = false;
}

/* Escape and q leave what lies on top first. */
static enum afz_live_answer go_back(struct afz_live_state *state, bool may_quit)
{
        if (state->help)
                state->help = false;
        else if (state->page != AFZ_LIVE_MAIN)
                turn_to(state, AFZ_LIVE_MAIN);
        else
                return may_quit ? AFZ_LIVE_QUIT : AFZ_LIVE_NOTHING;
        return AFZ_LIVE_REDRAW;
}

static bool scroll_key(struct afz_live_state *state, int key)
{
        enum { PAGE = 10, FAR = 1 << 20 };
        int by = key == AFZ_KEY_UP || key == 'k'     ? -1
                 : key == AFZ_KEY_DOWN || key == 'j' ? 1
                 : key == AFZ_KEY_PAGE_UP            ? -PAGE
                 : key == AFZ_KEY_PAGE_DOWN          ? PAGE
                 : key == AFZ_KEY_HOME               ? -FAR
                 : key == AFZ_KEY_END                ? FAR
                                                     : 0;
        state->scroll += by;
        if (state->scroll < 0)
                state->scroll = 0;
        if (state->scroll > FAR)
                state->scroll = FAR;
        return by != 0;
}

static enum afz_live_answer other_key(struct afz_live_state *state, int key)
{
        switch (key) {
        case 'p':
        case ' ':
                state->paused = !state->paused;
                break;
        case 's':
                state->sort = (enum afz_live_sort)((state->sort + 1) % AFZ_LIVE_SORTS);
                state->scroll = 0;
                break;
        case 't':
                state->sort = state->sort == AFZ_LIVE_BY_TREE ? AFZ_LIVE_BY_NEED : AFZ_LIVE_BY_TREE;
                state->scroll = 0;
                break;
        case 'g':
                turn_to(state, AFZ_LIVE_GPUS);
                break;
        case 'i':
                turn_to(state, AFZ_LIVE_INFO);
                break;
        case 'l':
                turn_to(state, AFZ_LIVE_LINES);
                break;
        case 'h':
        case '?':
                state->help = !state->help;
                break;
        case '+':
        case '=':
        case '-':
                step_interval(state, key != '-');
                break;
        default:
                return AFZ_LIVE_NOTHING;
        }
        return AFZ_LIVE_REDRAW;
}

enum afz_live_answer afz_live_key(struct afz_live_state *state, int key)
{
        switch (key) {
        case CTRL_C:
                return AFZ_LIVE_QUIT;
        case CTRL_Z:
                return AFZ_LIVE_SUSPEND;
        case CTRL_L:
                return AFZ_LIVE_REPAINT;
        case 'q':
                return go_back(state, true);
        case AFZ_KEY_ESCAPE:
                return go_back(state, false);
        default:
                return scroll_key(state, key) ? AFZ_LIVE_REDRAW : other_key(state, key);
        }
}
