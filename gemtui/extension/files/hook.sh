# gemtui's hook for Gemini CLI: sh hook.sh EVENT PID, with the event's JSON on stdin.
#
# It runs in every session of this user, so it is quick, never fails and changes nothing, but for
# runs that gemtui started so that they ask: those name a socket in GEMTUI_GATE. PID is the CLI's
# process. Beside this folder, live holds what each CLI did last, vault the sessions that are kept.

umask 077
event=$1 pid=$2
here=${0%/*}
live=${here%/*}/live vault=${here%/*}/vault

note() { # the beginning of stdin becomes the live file of this CLI, whole or not at all
    case $event in Notification) most=1048576 ;; *) most=16384 ;; esac
    head -c "$most" >"$live/.$pid.$$" && mv -f "$live/.$pid.$$" "$live/$pid" ||
        rm -f "$live/.$pid.$$"
}

ask() { # gemtui's answer is printed whole, or this fails; it writes the live file as well
    "$GEMTUI_PYTHON" -I -S "$here/ask.py" "$live" "$pid"
}

keep() { # link the session's file into the vault, below its own path and over nothing
    path=$(head -c 16384 "$live/$pid")
    path=${path#'{"session_id":"'*'","transcript_path":"'}
    path=${path%%'"'*}
    case $path in *\\* | [!/]* | '') return ;; esac
    tree=0
    while [ -e "$vault/$tree$path" ]; do
        [ "$vault/$tree$path" -ef "$path" ] && return
        tree=$((tree + 1))
    done
    mkdir -p "$vault/$tree${path%/*}" && ln "$path" "$vault/$tree$path" && return
    copy=$vault/copy$path
    mkdir -p "${copy%/*}" && cp -p "$path" "$copy.$$" && mv -f "$copy.$$" "$copy"
}

said=
if [ -n "$GEMTUI_GATE" ]; then
    if ask 2>/dev/null; then
        said=1
    elif [ "$event" = BeforeTool ]; then
        exit 2
    fi
elif [ -d "$live" ]; then
    note 2>/dev/null
fi
case $event in
AfterAgent | SessionEnd) [ -e "$vault/on" ] && keep >/dev/null 2>&1 ;;
esac
[ -n "$said" ] || echo '{}'
exit 0
