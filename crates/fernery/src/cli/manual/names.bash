
_fernery_names() {
    local found
    found=$("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
    if [[ -n "$found" ]]; then
        local IFS=$'\n'
        COMPREPLY=($found)
    else
        _fernery "$@"
    fi
}
complete -F _fernery_names -o nosort -o bashdefault -o default fernery
