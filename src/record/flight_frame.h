#ifndef AFZ_FLIGHT_FRAME_H
#define AFZ_FLIGHT_FRAME_H
/* The outer form of flight.afz: sixteen bytes that say what it is, then frames. Each frame has a
 * head of sixteen bytes (a word to find it by, type, length, sum) and stands alone, so that a
 * damaged one costs no other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        AFZ_FILE_HEAD = 16,
        AFZ_FRAME_HEAD = 16,
        AFZ_FRAME_MAX = 1 << 20, /* bytes of payload */
        AFZ_FILE_VERSION = 1,
};

enum afz_frame_type {
        AFZ_FRAME_ABOUT = 1, /* the run, and the names of kinds and metrics */
        AFZ_FRAME_PACK,      /* pack.h */
        AFZ_FRAME_BLOCK,     /* thinned columns: flight_block.h */
        AFZ_FRAME_MARKS,     /* a pack of old marks */
        AFZ_FRAME_END,       /* closed in order */
};

struct afz_frame {
        unsigned type;                /* may be one that we do not know */
        uint64_t at;                  /* where it begins in the file */
        const unsigned char *payload; /* its head lies right before */
        size_t len;
};

/* The sixteen bytes of each. */
void afz_file_head(unsigned char ret[AFZ_FILE_HEAD], uint32_t names_sum);
void afz_frame_head(unsigned char ret[AFZ_FRAME_HEAD], enum afz_frame_type type,
                    const void *payload, size_t len);

/* Walks the frames of a file, in order, whole ones only; what is damaged is passed over and
 * counted. A frame that is cut off at the end of the file, or zeros there, are no damage: somebody
 * is writing, or was when the power went. */
struct afz_frames {
        int fd;
        uint64_t at;        /* of the next frame */
        unsigned char *buf; /* bytes of the file from buf_at on */
        uint64_t buf_at;
        size_t have, cap;
        uint64_t in_vain; /* bytes that were read or summed up for nothing */
        uint32_t holes;
};

/* `from`: AFZ_FILE_HEAD, or where a frame begins. -ENOMEM. */
int afz_frames_open(struct afz_frames *ret, int fd, uint64_t from);
/* 1 and a frame, which is valid until the next call; 0 at the end; else -errno. */
int afz_frames_next(struct afz_frames *frames, struct afz_frame *ret);
void afz_frames_close(struct afz_frames *frames); /* not the fd */

/* Reads the sixteen bytes at the start. -EBADMSG: not ours; -EPROTO: another version (*ret_version
 * says which). -ENODATA: the file is empty or ends there. */
int afz_file_check(int fd, uint32_t *ret_names_sum, unsigned *ret_version);

#endif
