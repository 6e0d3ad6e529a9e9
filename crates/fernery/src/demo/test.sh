#!/bin/sh
# Says what is wrong with greet.sh, and fails if anything is.
failed=0

expect() {
    wanted=$1
    shift
    said=$(sh greet.sh "$@")
    if [ "$said" != "$wanted" ]; then
        echo "greet.sh${*:+ $*}: said \"$said\", not \"$wanted\""
        failed=1
    fi
}

expect "Hello, Fern!" Fern
expect "Hello, world!"
exit $failed
