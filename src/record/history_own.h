#ifndef AFZ_HISTORY_OWN_H
#define AFZ_HISTORY_OWN_H
/* What the files of the history share among themselves. */
#include "history.h"

struct afz_history_row {
        char id[AFZ_RUN_ID_CAP];
        bool has_page; /* in the runtime folder: it may live */
        bool looked;
        struct afz_history_run *run; /* NULL: not yet looked, or none */
};

struct afz_history {
        int runs_fd; /* -1: there is no state folder */
        size_t count, cap;
        struct afz_history_row *row; /* newest first */
};

/* Reads an ended run's verdict.json in the folder `id`. -ENOENT: it has none, or it is another
 * run's. A file that is damaged gives a run of that life. */
int afz_history_read(int runs_fd, const char *id, struct afz_history_run *ret);

/* The whole command and the git revision ("" where there is none) from a run's recording. -ENOENT:
 * it has none; -EBADMSG: it is damaged, or another run's. */
int afz_history_head(int runs_fd, const char *id, char **ret_cmd, char **ret_git);

/* The start that an ID tells. */
int64_t afz_history_id_time(const char *id);

#endif
