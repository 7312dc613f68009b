# One RAP flow over s -- r -- k, of which the packets with the numbers `drops` (from 0, as r sees them) vanish in front of
# the link from r to k, for `seconds`. Prints what the sender sees and decides, a line for each: `send` and `ack` with the
# number of a packet, `gap` with the gap in force from then on in nanoseconds; each behind its time in microseconds.
source [file join [file dirname [info script]] lib.tcl]
options {drops none seconds 14}
set sim [new Simulator]
set path rap.[pid].tmp
set trace [open $path w]
$sim trace-all $trace
foreach name {s r k} { set $name [$sim node] }
pair $sim $s $r 8Mb 0.1ms 1000 1000
pair $sim $r $k 0.8Mb 100ms 1000 1000
set sender [rate_connection $sim $s $k rap 1000]
set variables [open $path.variables w]
$sender attach-trace $variables
$sender tracevar ipg_
lose $sim $r $k $opt(drops)
$sim at 0 "$sender start"
$sim at $opt(seconds) report

proc report {} {
    global opt sim trace variables path s r
    $sim flush-trace
    close $trace
    close $variables
    set events {}
    set number 0
    set file [open $path]
    while {[gets $file line] >= 0} {
        foreach {what at from to kind size flags flow source target seq} $line break
        set time [expr {round($at * 1e6)}]
        switch -- "$what $from $to $kind" \
            "+ [$s id] [$r id] rap_data" { lappend events [list $time send $seq] } \
            "r [$r id] [$s id] rap_ack" { lappend events [list $time ack $seq] }
    }
    close $file
    set file [open $path.variables]
    while {[gets $file line] >= 0} {
        lappend events [list [expr {round([lindex $line 2] * 1e6)}] gap [expr {round([lindex $line 12] * 1e9)}]]
    }
    close $file
    file delete $path $path.variables
    puts "# drops $opt(drops)"
    foreach event [lsort -integer -index 0 $events] { puts $event }
    exit 0
}
$sim run
