# Four links in a row with two long and two medium NewReno flows over all of them and a short one over each.
# Prints the packets that each flow had acknowledged, long ones first, and the drops at each of the links.
source [file join [file dirname [info script]] lib.tcl]
options {seconds 100 seed 1 buffer 83}
only_ip_and_tcp
set sim [new Simulator]
set starts [stream $opt(seed) starts]
ns-random $opt(seed)
for {set i 0} {$i < 5} {incr i} { set hop($i) [$sim node] }
for {set i 0} {$i < 4} {incr i} {
    set next $hop([expr {$i + 1}])
    pair $sim $hop($i) $next 100Mb 10ms $opt(buffer) $opt(buffer)
    lappend monitors [$sim monitor-queue $hop($i) $next ""]
}
foreach {first last delay} {0 4 25ms 0 4 25ms 0 4 2.5ms 0 4 2.5ms 0 1 2.5ms 1 2 2.5ms 2 3 2.5ms 3 4 2.5ms} {
    set from [$sim node]
    set to [$sim node]
    pair $sim $from $hop($first) 1000Mb $delay 100000 100000
    pair $sim $hop($last) $to 1000Mb $delay 100000 100000
    lassign [connection $sim $from $to newreno 1500 100000] sender sink
    [new Application/FTP] attach-agent $sender
    $sim at [$starts uniform 0 1] "$sender send -1"
    lappend senders $sender
}
proc report {} {
    global opt senders monitors
    set row $opt(seed)
    foreach sender $senders { lappend row [$sender set ack_] }
    foreach monitor $monitors { lappend row [$monitor set pdrops_] }
    puts $row
    exit 0
}
$sim at $opt(seconds) report
$sim run
