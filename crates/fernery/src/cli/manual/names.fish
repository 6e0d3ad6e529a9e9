
complete -c fernery -a '(command fernery complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
