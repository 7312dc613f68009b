# Reno flows on the dumbbell of the TLTCP paper's Table 1:
#
#   source --10 Mb/s, 2 ms-- left --1.5 Mb/s, 20 ms, drop-tail 400-- right --10 Mb/s, 2 ms-- target
#
# The agents, windows and sizes are those of dumbbell.toml beside this file.
source [file join [file dirname [info script]] common.tcl]
array set option {flows 30 seconds 500 window 10 scheduler Heap seed 1 count fast}
read_options $argv

set sim [lean_simulator $option(scheduler) {IP TCP Flags}]
set random [new RNG]
$random seed $option(seed)
set left [$sim node]
set right [$sim node]
$sim duplex-link $left $right 1.5Mb 20ms DropTail
$sim queue-limit $left $right 400
$sim queue-limit $right $left 1000
for {set flow 0} {$flow < $option(flows)} {incr flow} {
    set source [$sim node]
    set target [$sim node]
    $sim duplex-link $source $left 10Mb 2ms DropTail
    $sim duplex-link $right $target 10Mb 2ms DropTail
    foreach {from to} [list $source $left $left $source $right $target $target $right] {
        $sim queue-limit $from $to 1000
    }
    lappend flows [reno_flow $sim $source $target 1500 $option(window) [$random uniform 0 1]]
}
if {$option(count) eq "exact"} { watch_all_links $sim }

# Each segment crosses its first link; those that were acknowledged crossed two more, and their
# acknowledgements three. What is on the way at the end is left out: at most a window per flow.
proc finish {} {
    global flows option
    set goodputs {}
    set hops 0
    foreach flow $flows {
        lassign $flow sender sink
        lappend goodputs [expr {[$sink set bytes_] * 8.0 / $option(seconds)}]
        incr hops [expr {[$sender set ndatapack_] + 5 * [$sender set nackpack_]}]
    }
    if {$option(count) eq "exact"} { set hops [monitored_hops] }
    closing_line $goodputs $hops
    exit 0
}
$sim at $option(seconds) finish
$sim run
