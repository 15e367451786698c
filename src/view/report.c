#include "report.h"

#include <time.h>

#include "report_parts.h"
#include "secret.h"

static void put_head(struct afz_out *out, const struct afz_report *report)
{
        afz_out_fmt(out,
                    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; "
                    "form-action 'none'\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n"
                    "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
                    afz_report_css_sha256, afz_report_js_sha256);
        afz_report_text(out, report->run, 64);
        afz_out_str(out, " · Antifreeze</title>\n<style>");
        afz_out_str(out, afz_report_css);
        afz_out_str(out, "</style>\n</head>\n<body>\n<main>\n");
}

static void put_title(struct afz_out *out, const struct afz_report *report)
{
        char time[AFZ_REPORT_TEXT_CAP], started[64] = "", cmd[1536];
        time_t s = (time_t)report->started_s;
        struct tm tm;
        if (s > 0 && localtime_r(&s, &tm))
                strftime(started, sizeof started, "%e %B %Y, %H:%M %Z", &tm);
        afz_out_str(out, "<header>\n<p class=\"brand\">Antifreeze</p>\n<h1><code>");
        afz_report_text(out,
                        report->cmd[0] ? afz_secret_text(report->cmd, cmd, sizeof cmd)
                                       : "(the command is not known)",
                        1500);
        afz_out_str(out, "</code></h1>\n<p class=\"meta\">");
        if (started[0])
                afz_out_fmt(out, "<span>%s</span> ", started[0] == ' ' ? started + 1 : started);
        afz_out_fmt(out, "<span>%s</span> ", afz_report_time(time, report->duration_ms));
        if (report->flight->head.host[0]) {
                afz_out_str(out, "<span>on ");
                afz_report_text(out, report->flight->head.host, 64);
                afz_out_str(out, "</span> ");
        }
        afz_out_str(out, "<span>run ");
        afz_report_text(out, report->run, 64);
        afz_out_str(out, "</span></p>\n</header>\n");
}

static void put_foot(struct afz_out *out, const struct afz_report *report)
{
        afz_out_str(out, "<footer><p>Made by Antifreeze ");
        afz_report_text(out, report->version, 32);
        afz_out_str(out, " from the run's recording. GB are 1024³ bytes. This page is one file and "
                         "asks nobody for anything.</p></footer>\n</main>\n");
}

int afz_report_put(struct afz_out *out, const struct afz_report *report)
{
        struct afz_report_picture *picture;
        int r = afz_report_picture_make(report, &picture);
        if (r < 0)
                return r;
        put_head(out, report);
        put_title(out, report);
        afz_report_verdicts(out, report);
        afz_report_figures(out, report, picture);
        afz_report_timeline(out, report, picture);
        afz_report_uses_put(out, report);
        afz_report_ledger_put(out, report, picture);
        afz_report_sites(out, report);
        afz_report_flame(out, report);
        r = afz_report_processes(out, report, picture);
        afz_report_stacks(out, report);
        afz_report_facts(out, report);
        put_foot(out, report);
        afz_report_data(out, report, picture);
        afz_out_str(out, "<script>");
        afz_out_str(out, afz_report_js);
        afz_out_str(out, "</script>\n</body>\n</html>\n");
        afz_report_picture_free(picture);
        return r < 0 ? r : out->err;
}
