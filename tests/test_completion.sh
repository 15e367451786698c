#!/bin/bash
# Loads the generated completion scripts into real shells and completes things.
#
#   test_completion.sh FAKE_CLI
#
# FAKE_CLI prints a script made from the rows in cli_fixture.h. bash and zsh run on a pseudo-terminal: a line is typed, a
# key inserts *all* completions, Enter runs it, and a function of the program's name writes down its arguments. fish can
# be asked directly. Shells that are not installed are named and passed over; 77 if none is there.
set -euo pipefail

fake_cli=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_STATE_HOME=$work/state TERM=dumb PATH=$work/bin:$PATH
mkdir -p "$work/bin" "$work/here/alpha" "$work/here/alto" "$work/state/antifreeze/runs/brave-otter"
: >"$work/here/also.txt"

# A process list that stays the same.
cat >"$work/bin/pgrep" <<END
#!/bin/sh
case "\$*" in
'-l -u $UID') echo '4242 trainer: x' ;;
'-u $UID') echo 4242 ;;
*) exit 2 ;;
esac
END
printf '#!/bin/sh\n' >"$work/bin/trainer-of-this-test"
chmod +x "$work/bin"/*

# What is typed | what must be on the line, in any order, after the name. Nothing on the right: nothing more than typed.
cases() {
    cat <<'END'
antifreeze |run watch capture doctor completion help
antifreeze wa|watch
antifreeze --v|--version
antifreeze helper|helper
antifreeze help wa|help watch
antifreeze completion |completion bash zsh fish
antifreeze watch |watch 4242 brave-otter
antifreeze watch --j|watch --json
antifreeze watch --interval 5 4|watch --interval 5 4242
antifreeze watch -i 5 br|watch -i 5 brave-otter
antifreeze watch otter|watch brave-otter
antifreeze capture al|capture alpha alto
antifreeze capture alpha |capture alpha 4242
antifreeze watch --output als|watch --output also.txt
antifreeze watch -o als|watch -o also.txt
antifreeze run --se|run --se
antifreeze run --no-c|run --no-color
antifreeze run --policy |run --policy watch protect adapt
antifreeze run -p ad|run -p adapt
antifreeze run --policy=ad|run --policy=adapt
antifreeze run --run-dir=alt|run --run-dir=alto
antifreeze run --policy=adapt --j|run --policy=adapt --json
antifreeze doctor --|doctor --help
antifreeze doctor x y|doctor x y
antifreeze run --run-dir alt|run --run-dir alto
antifreeze run --swap 5 -q --j|run --swap 5 -q --json
antifreeze run -- trainer-of|run -- trainer-of-this-test
antifreeze run trainer-of|run trainer-of-this-test
antifreeze run trainer-of-this-test als|run trainer-of-this-test also.txt
antifreeze run trainer-of-this-test --pol|run trainer-of-this-test --pol
END
}

failures=0
tested=0

sorted() { tr ' ' '\n' | sed '/^$/d; s,/$,,' | sort | tr '\n' ' '; }

check() { # shell, typed, wanted, got
    local wanted got
    wanted=$(sorted <<<"$3")
    got=$(sorted <<<"$4")
    [[ $wanted == "$got" ]] && return
    printf '%s: typed "%s"\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$wanted" "$got"
    failures=$((failures + 1))
}

# Types every case into an interactive shell and compares what its function wrote down. $1: shell, $2: the key that
# inserts all completions, the rest: the command.
type_cases() {
    local shell=$1 key=$2 typed wanted got
    shift 2
    : >"$work/got"
    {
        while IFS='|' read -r typed wanted; do
            printf '%s%b\n' "$typed" "$key"
        done < <(cases)
        printf 'exit\n'
    } >"$work/keys"
    (cd "$work/here" && timeout 60 script -qec "$*" /dev/null <"$work/keys" >"$work/screen.$shell" 2>&1) || true
    while IFS='|' read -r typed wanted <&3; do
        IFS= read -r got <&4 || got='(the shell ended early)'
        check "$shell" "$typed" "$wanted" "$got"
    done 3< <(cases) 4<"$work/got"
    tested=$((tested + 1))
}

test_bash() {
    "$fake_cli" bash >"$work/antifreeze.bash"
    cat >"$work/bashrc" <<END
set -u
PS1='$ '
bind '"\C-x*": insert-completions'
bind 'set completion-query-items 0'
. "$work/antifreeze.bash"
antifreeze() { echo "\$*" >>"$work/got"; }
END
    # zsh and fish quote what they insert; bash does not, so such a name must not be offered.
    mkdir "$work/state/antifreeze/runs/\$(touch hit)"
    type_cases bash '\x18*' bash --noprofile --rcfile "$work/bashrc" -i
    rmdir "$work/state/antifreeze/runs/\$(touch hit)"
    check bash 'a run whose name is a command substitution' '' "$(find "$work/here" -name hit)"
}

test_zsh() {
    "$fake_cli" zsh >"$work/antifreeze.zsh"
    cat >"$work/.zshrc" <<END
PS1='$ '
autoload -Uz compinit
compinit -u -D
zle -C all-matches complete-word _generic
bindkey '^X*' all-matches
zstyle ':completion:all-matches::::' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert true
. "$work/antifreeze.zsh"
antifreeze() { print -r -- "\$*" >>"$work/got" }
END
    ZDOTDIR=$work type_cases zsh '\x18*' zsh -d -i
}

# What fish offers takes the place of the last word; when it offers nothing, the word stays.
test_fish() {
    local typed wanted got before
    "$fake_cli" fish >"$work/antifreeze.fish"
    while IFS='|' read -r typed wanted; do
        got=$(cd "$work/here" && TYPED=$typed fish --no-config -c "
            source $work/antifreeze.fish
            complete -C \"\$TYPED\"" 2>"$work/complaints" | cut -f1 | tr '\n' ' ')
        before=${typed% *}
        [[ -n ${got// /} ]] || got=${typed##* }
        check fish "$typed" "$wanted" "${before#antifreeze} $got"
        check fish "$typed" "" "$(cat "$work/complaints")"
    done < <(cases)
    tested=$((tested + 1))
}

for shell in bash zsh fish; do
    if command -v "$shell" >/dev/null && { [[ $shell == fish ]] || command -v script >/dev/null; }; then
        "test_$shell"
    else
        echo "$shell (or script) is not installed: its completion is not tested"
    fi
done
[[ $tested -gt 0 ]] || exit 77
echo "completion: $tested shells, $(cases | wc -l) cases each, $failures failures"
[[ $failures -eq 0 ]]
