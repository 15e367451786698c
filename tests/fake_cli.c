/* Prints what is made from the fixture's rows, so that shells and man can be tried on it: fake_cli
 * bash|zsh|fish|man|help */
#include <stdio.h>
#include <string.h>

#include "cli_fixture.h"
#include "help.h"
#include "manpage.h"

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "help";
        const struct afz_command *command = afz_command_find(&fixture_program, what);
        int r;

        if (strcmp(what, "man") == 0)
                r = afz_manpage_write(stdout, &fixture_program);
        else if (command && strcmp(what, "help") != 0)
                r = afz_help_command(stdout, &fixture_program, command, AFZ_HELP_WIDTH);
        else if (strcmp(what, "help") == 0)
                r = afz_help_program(stdout, &fixture_program, AFZ_HELP_WIDTH);
        else
                r = afz_completion_write(stdout, &fixture_program, what);
        return r < 0;
}
