# One connection over s -- r -- k for 6 s; data packets with the numbers `drops` (from 0, as r sees them)
# vanish in front of the link from r to k. Prints one line for each kind of event, run-length coded, and
# one line of counts; README.md has the format.
source [file join [file dirname [info script]] lib.tcl]
options {variant reno drops none careful true era 2000}
tcp_defaults $opt(era)
Agent/TCP set bugFix_ $opt(careful)

set sim [new Simulator]
# Links are traced that are made after this.
set path drops.[pid].tmp
set trace [open $path w]
$sim trace-all $trace
foreach name {s r k} { set $name [$sim node] }
pair $sim $s $r 8Mb 0.1ms 1000 1000
pair $sim $r $k 0.8Mb 100ms 1000 1000
lassign [connection $sim $s $k $opt(variant) 1000 50] sender sink
[new Application/FTP] attach-agent $sender
lose $sim $r $k $opt(drops)

$sim at 0 "$sender send -1"
$sim at 6 report

# n numbers seq, seq + i, .. at times t, t + d, .. as seq@t*n+i+d; a single one as seq@t.
proc run_lengths {pairs} {
    set words {}
    set run {}
    foreach {seq time} [concat $pairs {x x}] {
        if {[llength $run] == 2 && $seq ne "x"} {
            set step [list [expr {$seq - [lindex $run 0]}] [expr {$time - [lindex $run 1]}]]
        }
        set length [expr {[llength $run] / 2}]
        set fits [expr {$seq ne "x" && ($length < 2 ||
            ($seq - [lindex $run end-1] == [lindex $step 0] && $time - [lindex $run end] == [lindex $step 1]))}]
        if {!$fits} {
            if {$length == 1} {
                lappend words [lindex $run 0]@[lindex $run 1]
            } elseif {$length > 1} {
                lappend words [lindex $run 0]@[lindex $run 1]*$length+[join $step +]
            }
            set run {}
        }
        lappend run $seq $time
    }
    return $words
}

proc report {} {
    global opt sim trace path sender s r k
    $sim flush-trace
    close $trace
    array set events {send {} recv {} ack {}}
    set top -1
    set hundredth -
    set file [open $path]
    while {[gets $file line] >= 0} {
        foreach {what at from to kind size flags flow source target seq} $line break
        set time [expr {round($at * 1e6)}]
        switch -- "$what $from $to $kind" \
            "+ [$s id] [$r id] tcp" { lappend events(send) $seq $time } \
            "r [$r id] [$k id] tcp" { lappend events(recv) $seq $time } \
            "r [$r id] [$s id] ack" {
                lappend events(ack) $seq $time
                set top [expr {max($top, $seq)}]
                if {$hundredth eq "-" && $seq >= 100} { set hundredth $time }
            }
    }
    close $file
    file delete $path
    set name "$opt(drops) $opt(careful)"
    puts "$name counts [$sender set ndatapack_] [$sender set nrexmitpack_] [$sender set nrexmit_] $top $hundredth"
    foreach kind {send recv ack} { puts "$name $kind [run_lengths $events($kind)]" }
    exit 0
}
$sim run
