# gemtui's hook for Gemini CLI: sh hook.sh EVENT PID, with the event's JSON on stdin.
#
# It runs in every session of this user, so it is quick, never fails and changes nothing, but for
# runs that gemtui started so that they ask: those name a socket in GEMTUI_GATE, and ask before and
# after tool calls without this file (content.py). PID is the CLI's process. Beside this folder, live holds what each CLI did last, vault the sessions that are kept,
# hooked the events after which a checkpoint is to be taken.

umask 077
event=$1 pid=$2
here=${0%/*}
live=${here%/*}/live vault=${here%/*}/vault hooked=${here%/*}/hooked

note() { # the beginning of stdin becomes the live file of this CLI, whole or not at all
    case $event in Notification) most=1048576 ;; *) most=16384 ;; esac
    head -c "$most" >"$live/.$pid.$$" && mv -f "$live/.$pid.$$" "$live/$pid" ||
        rm -f "$live/.$pid.$$"
    case $event in # whether it has asked since the last prompt
    Notification) true >"$live/$pid.asked" ;;
    SessionStart | BeforeAgent) [ ! -e "$live/$pid.asked" ] || rm -f "$live/$pid.asked" ;;
    esac
}

ask() { # gemtui's answer is printed whole, or this fails; it writes the live file as well
    "$GEMTUI_PYTHON" -I -S "$here/ask.py" "$live" "$pid"
}

checkpoints() { # whether the settings may want checkpoints in every session
    [ -z "$GEMTUI_RUN" ] && [ -r "$here/checkpoint.sh" ] || return
    . "$here/checkpoint.sh"
    [ -f "$config" ] || return
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in *always*) return 0 ;; esac
    done <"$config"
    return 1
}

checkpoint() { # the event becomes a file, which the program that checkpoint.sh starts removes
    told=$hooked/$pid.$$.$event
    [ -d "$hooked" ] || mkdir "$hooked"
    cat >"$hooked/.$pid.$$" && mv "$hooked/.$pid.$$" "$told" || rm -f "$hooked/.$pid.$$"
    note <"$told"
    case $event in
    BeforeTool | AfterTool)
        tool=$(head -c 16384 "$told")
        tool=${tool#*'"tool_name":"'}
        case $reads in *" ${tool%%'"'*} "*) rm -f "$told" && return ;; esac
        ;;
    esac
    case $event in
    BeforeTool) ;;
    BeforeAgent) take "${here%/*}" "$told" >/dev/null 2>&1 </dev/null ;;
    *) take "${here%/*}" "$told" >/dev/null 2>&1 </dev/null & ;;
    esac
}

keep() { # files of the session, of its subagents, its tool outputs and plans are copied to the vault
    told=$(head -c 16384 "$live/$pid")
    id=${told#'{"session_id":"'}
    id=${id%%'"'*}
    path=${told#'{"session_id":"'*'","transcript_path":"'}
    path=${path%%'"'*}
    case $path in *\\* | */../*) return ;; /*/chats/*.json | /*/chats/*.jsonl) ;; *) return ;; esac
    keep_file "$path"
    case $id in '' | *[!A-Za-z0-9_-]*) return ;; esac
    project=${path%/chats/*}
    for file in "${path%/*}/$id"/*.jsonl "$project/tool-outputs/session-$id"/* "$project/$id"/*/*; do
        keep_file "$file"
    done
}

keep_file() { # a copy below its own path, made anew where the file only went on; another version of
    # a log is moved aside first (gemtui/kept/vault.py), and of an object left to gemtui
    [ -f "$1" ] && [ ! -h "$1" ] || return
    copy=$vault/copy$1 new=$vault/copy${1%/*}/.hook-$$
    if [ -e "$copy" ]; then
        [ ! "$copy" -nt "$1" ] && [ ! "$1" -nt "$copy" ] && return
        case $(LC_ALL=C cmp "$copy" "$1" 2>&1) in
        '' | *"EOF on $copy"*) ;;
        *) case $1 in *.jsonl) [ -s "$1" ] && set_aside "$1" || return ;; *.json) return ;; esac ;;
        esac
    fi
    mkdir -p "${copy%/*}" && cp -p "$1" "$new" && mv -f "$new" "$copy" || rm -f "$new"
}

set_aside() { # the copy of a log gets a second name, in the first tree that has none like it
    tree=0
    while [ -e "$vault/$tree$1" ]; do tree=$((tree + 1)); done
    mkdir -p "$vault/$tree${1%/*}" && ln "$vault/copy$1" "$vault/$tree$1"
}

[ -d "$live" ] || mkdir "$live"
said=
if [ -n "$GEMTUI_GATE" ]; then
    ask && said=1
else
    case $event in
    BeforeAgent | BeforeTool | AfterTool | AfterAgent) checkpoints && checkpoint || note ;;
    *) note ;;
    esac
fi
case $event in
AfterAgent | SessionEnd) [ -e "$vault/on" ] && keep >/dev/null ;;
esac
[ -n "$said" ] || echo '{}'
exit 0
