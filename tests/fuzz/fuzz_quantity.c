/* Any bytes as a size, a share, a duration and a number: no crash, nothing set on failure, bounds
 * kept, and what is written is read back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_CAP = 256 };

static void require(int holds)
{
        if (!holds)
                abort();
}

static void try_parser(const char *text, int (*parse)(const char *, uint64_t *), uint64_t *ret)
{
        const uint64_t untouched = UINT64_C(0x5ca1ab1e);
        uint64_t value = untouched;
        int r = parse(text, &value);

        require(r <= 0);
        require(r == 0 || value == untouched);
        *ret = value;
}

static void try_percent(const char *text)
{
        struct afz_size_or_percent amount;

        if (afz_parse_size_or_percent(text, &amount) < 0)
                return;
        require(!amount.is_percent || amount.permyriad <= 10000);
        require(!amount.is_percent || afz_size_or_percent_of(amount, UINT64_MAX) <= UINT64_MAX);
        require(!amount.is_percent || afz_size_or_percent_of(amount, 12345) <= 12345);
}

static void try_formats(uint64_t value)
{
        char roomy[64];
        uint64_t back;

        require(strlen(afz_format_size(roomy, sizeof(roomy), value)) < AFZ_SIZE_TEXT_CAP);
        require(strcmp(roomy, "16E") == 0 || afz_parse_size(roomy, &back) == 0);
        require(strlen(afz_format_duration(roomy, sizeof(roomy), value)) < AFZ_DURATION_TEXT_CAP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char text[TEXT_CAP];
        uint64_t value;

        if (size >= sizeof(text))
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        try_parser(text, afz_parse_size, &value);
        try_formats(value);
        try_parser(text, afz_parse_duration, &value);
        try_formats(value);
        try_parser(text, afz_parse_u64, &value);
        try_formats(value);
        try_percent(text);
        if (size >= sizeof(value)) {
                memcpy(&value, data, sizeof(value));
                try_formats(value);
        }
        return 0;
}
