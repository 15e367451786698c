#include "metrics.h"

#include "metric.h"

static const char head[] = "# Every metric\n"
                           "What `antifreeze watch --json` shows of each kind of subject. A name "
                           "ends in its unit. A counter "
                           "only grows;\nits rate stands under `rates`, with `_per_s` behind the "
                           "name. What is not known is "
                           "null, never 0.\n\n";

void afz_metrics_table(struct afz_out *out)
{
        afz_out_str(out, head);
        for (int k = AFZ_KIND_NONE + 1; k < AFZ_KIND_COUNT; k++) {
                const struct afz_kind_info *kind = &afz_kind_table[k];
                afz_out_fmt(out, "## %s\n%s; in JSON under `%s`\n\n", kind->name, kind->what,
                            kind->plural ? kind->plural : kind->name);
                afz_out_str(out, "| metric | type | meaning (source) |\n| --- | --- | --- |\n");
                for (unsigned i = 0; i < kind->metrics; i++)
                        afz_out_fmt(out, "| `%s` | %s | %s |\n", kind->metric[i].name,
                                    afz_metric_type_name(kind->metric[i].type),
                                    kind->metric[i].meaning);
                afz_out_char(out, '\n');
        }
}
