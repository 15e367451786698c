#include "ladder_rules.h"

bool afz_ladder_tell(struct afz_decision *ret, enum afz_cause cause)
{
        if (afz_does(ret, AFZ_ACTION_TELL))
                return false;
        afz_do(ret, AFZ_ACTION_TELL);
        ret->cause = cause;
        return true;
}

/* Begins and ends the episode. */
static bool pressed(struct afz_ladder *l, const struct afz_look *look)
{
        const struct afz_pressure *p = &l->pressure;
        if (p->low || p->hurting) {
                if (!l->pressed_ns)
                        l->pressed_ns = look->t_ns;
                l->unpressed_ns = 0;
                return true;
        }
        if (!l->pressed_ns)
                return false;
        if (!l->unpressed_ns)
                l->unpressed_ns = look->t_ns;
        if (look->t_ns - l->unpressed_ns >= afz_rule.pressure_gone_ns) {
                l->pressed_ns = l->unpressed_ns = 0;
                afz_pressure_calm(&l->pressure);
        }
        return false;
}

static void tell_pressure(struct afz_ladder *l, const struct afz_look *look,
                          struct afz_decision *ret)
{
        /* Never told, or long ago and in an episode before this one. */
        bool due = !l->pressure_told_ns ||
                   (l->pressure_told_ns < l->pressed_ns &&
                    look->t_ns - l->pressure_told_ns >= afz_rule.pressure_tell_ns);
        if (due && afz_ladder_tell(ret, AFZ_CAUSE_PRESSURE))
                l->pressure_told_ns = look->t_ns;
}

static void squeeze(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        uint64_t bytes = l->pressure.squeeze_bytes;
        bool due = !l->squeezed_ns || look->t_ns - l->squeezed_ns >= afz_rule.squeeze_ns;
        if (!bytes || !due || l->stage >= AFZ_STAGE_INTERRUPTED)
                return;
        l->squeezed_ns = look->t_ns;
        ret->squeeze_bytes = bytes;
        afz_do(ret, AFZ_ACTION_SQUEEZE);
}

bool afz_ladder_press(struct afz_ladder *l, const struct afz_pulse *pulse,
                      const struct afz_look *look, struct afz_decision *ret, bool *ret_now)
{
        const struct afz_pressure *p = &l->pressure;
        const struct afz_lines *lines = &l->setup.lines;
        uint64_t total = afz_tier_brake[l->setup.tier].pressure_ns, available = UINT64_MAX;
        *ret_now = false;
        if (p->thrashes && !l->told_thrash)
                l->told_thrash = afz_ladder_tell(ret, AFZ_CAUSE_BUDGET);
        if (!pressed(l, look))
                return false;
        tell_pressure(l, look, ret);
        squeeze(l, look, ret);

        /* The job takes what is left; or everything suffers, whoever began it. */
        bool takes = p->low && p->own && look->growing && !p->small;
        bool over = look->has_need && look->need > lines->act_bytes;
        if ((p->hurting && !p->small) || takes)
                (void)afz_brake_start(l, AFZ_BRAKE_PRESSURE, look->t_ns,
                                      afz_brake_pulse[AFZ_BRAKE_PRESSURE].most_ns, total, ret);

        uint64_t used =
                l->setup.can_brake ? l->used_ns[AFZ_BRAKE_PRESSURE] : look->t_ns - l->pressed_ns;
        (void)afz_pulse_get(pulse, AFZ_PULSE_AVAILABLE, &available);
        if (takes && p->critical && !l->braked) {
                *ret_now = p->last || afz_reach(look->steady, afz_rule.near_ns) >= available;
                if (*ret_now || used >= afz_least(afz_rule.own_ns, total))
                        return true;
        }
        if (!p->hurting || !look->has_need)
                return false;
        if (l->setup.tier == AFZ_TIER_NONE && over && (look->growing || p->blamed) &&
            used >= afz_rule.none_hurt_ns)
                return true;
        /* A neighbour's growth alone never ends it: it must be better without the job, and the job
         * must be near its budget or the largest of all. */
        return used >= total && p->blamed && (over || p->largest);
}

/* More processes than there may be. A cgroup refuses them by itself, and the job is ended when it
 * stays at its limit; elsewhere the storm is frozen, and killed when it grows on, frozen or freed.
 */
bool afz_ladder_storm(struct afz_ladder *l, const struct afz_pulse *pulse,
                      const struct afz_look *look, struct afz_decision *ret)
{
        uint64_t most = l->setup.processes_max, count;
        if (!most || !afz_pulse_get(pulse, AFZ_PULSE_PROCESSES, &count))
                return false;
        bool none = l->setup.tier == AFZ_TIER_NONE;
        if (count <= most - (none ? 0 : most / 20)) {
                if (count < most / 2) {
                        l->storms = 0;
                        l->storm_told = false;
                }
                l->storm_ns = 0;
                return false;
        }
        if (!l->storm_told && afz_ladder_tell(ret, AFZ_CAUSE_BUDGET))
                ret->storm = l->storm_told = true;
        /* Held, but it will never come to an end. Elsewhere the limit on the user's tasks stands at
         * twice as many (guard_start.c). */
        if (!none || count >= 2 * most) {
                if (l->storm_ns == 0)
                        l->storm_ns = look->t_ns;
                if (look->t_ns - l->storm_ns >= afz_rule.storm_ns)
                        return true;
        }
        if (!none)
                return false;
        uint64_t eighth = most / 8 + 1;
        if (!l->storms) {
                l->storm_count = count;
        } else if (count > l->storm_count + eighth) {
                bool froze = l->braked && look->t_ns - l->brake_ns < 20 * AFZ_MS;
                return !froze || count > l->storm_count + most;
        } else {
                return false;
        }
        l->storms++;
        (void)afz_brake_start(l, AFZ_BRAKE_STORM, look->t_ns,
                              afz_brake_pulse[AFZ_BRAKE_STORM].most_ns, AFZ_SECOND, ret);
        return false;
}

/* A disk or /dev/shm that fills up: told, and slowed down for a while. */
void afz_ladder_fill(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        const struct afz_space_word *word = &l->space;
        if (word->level ==
            AFZ_SPACE_OK) /* not at a lower level: it writes less while it is frozen */
                l->space_told = AFZ_SPACE_OK;
        if (word->level > l->space_told && afz_ladder_tell(ret, word->cause))
                l->space_told = word->level;
        if (word->level == AFZ_SPACE_BRAKE)
                (void)afz_brake_start(l, AFZ_BRAKE_SPACE, look->t_ns,
                                      afz_brake_pulse[AFZ_BRAKE_SPACE].most_ns, afz_rule.space_ns,
                                      ret);
}
