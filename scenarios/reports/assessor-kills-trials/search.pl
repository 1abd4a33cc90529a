#!/usr/bin/perl
# A search over learning rates: two trials at a time, and a trial whose loss is bad after a few epochs is killed.
use strict;
use warnings;
use File::Basename qw(dirname);
use IO::Select;

my $here   = dirname(__FILE__);
my $python = $ENV{PYTHON} // 'python3';
my @rates  = (0.2, 0.00001, 0.1, 0.00003, 0.05);
my ($next, %trials) = (0);
my $metrics = IO::Select->new;
$| = 1;
$ENV{OMP_NUM_THREADS} = 1;

sub start {
    return if $next >= @rates;
    my $pid = open(my $pipe, '-|', $python, "$here/trial.py", $rates[$next]) or die "cannot start a trial: $!";
    $trials{$pipe} = { number => $next++, pid => $pid, loss => 'none', text => '' };
    $metrics->add($pipe);
}

sub finish {
    my ($pipe, $word) = @_;
    my $trial = delete $trials{$pipe};
    $metrics->remove($pipe);
    close $pipe;    # waits for the process
    print "trial $trial->{number}: $word with loss $trial->{loss}, status $?\n";
    start();
}

start() for 1 .. 2;
while ($metrics->count) {
    for my $pipe ($metrics->can_read) {
        my $size = sysread $pipe, my $text, 4096;
        if (!$size) {
            finish($pipe, 'over');
            next;
        }
        $trials{$pipe}{text} .= $text;
        my ($epoch, $loss) = $trials{$pipe}{text} =~ /(\d+) ([\d.]+)\n\z/ or next;
        $trials{$pipe}{loss} = $loss;
        if ($epoch >= 6 && $loss > 2) {
            kill 'KILL', $trials{$pipe}{pid};
            finish($pipe, 'killed');
        }
    }
}
print "search over, $next trials\n";
