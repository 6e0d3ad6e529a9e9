
_fernery_names() {
    local -a found
    found=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then
        # A colon parts a name from what it is.
        found=("${(@)found//:/\\:}")
        found=("${(@)found/$'\t'/:}")
        _describe 'name' found
    else
        _fernery "$@"
    fi
}
compdef _fernery_names fernery
if [ "$funcstack[1]" = "_fernery" ]; then
    _fernery_names "$@"
fi
