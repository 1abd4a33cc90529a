#!/usr/bin/perl
# Semantic propositional scores: parses all captions and their references, then compares their scene graphs
use strict;
use warnings;

my %option;
while (@ARGV) {
    my $word = shift @ARGV;
    if ($word eq '-in' or $word eq '-out') {
        $option{$word} = shift @ARGV;
    } else {
        $option{$word} = 1;
    }
}

my $SYMBOLS = 40;
my @rules = map { [ ($_ * 7 + 3) % $SYMBOLS, ($_ * 11 + 5) % $SYMBOLS, 0.01 * ($_ % 9) ] } 0 .. $SYMBOLS - 1;

sub parse_sentence {
    my ($tokens) = @_;
    my $length = scalar @$tokens;
    my %chart;
    for my $start (0 .. $length - 1) {
        my $weight = 0;
        $weight += ord($_) for split //, $tokens->[$start];
        $chart{"$start,1"} = [ map { (($weight * ($_ + 1)) % 97) / 97 } 0 .. $SYMBOLS - 1 ];
    }
    for my $width (2 .. $length) {
        for my $start (0 .. $length - $width) {
            my @best = (-1e9) x $SYMBOLS;
            for my $split (1 .. $width - 1) {
                my $left = $chart{"$start,$split"};
                my $right = $chart{ ($start + $split) . ',' . ($width - $split) };
                for my $symbol (0 .. $SYMBOLS - 1) {
                    my $rule = $rules[$symbol];
                    my $score = $left->[ $rule->[0] ] + $right->[ $rule->[1] ] - $rule->[2];
                    $best[$symbol] = $score if $score > $best[$symbol];
                }
            }
            $chart{"$start,$width"} = \@best;
        }
    }
    return { tokens => $tokens, chart => \%chart };
}

sub propositions {
    my ($graph) = @_;
    my @tokens = @{ $graph->{tokens} };
    my %found;
    for my $at (0 .. $#tokens) {
        $found{ $tokens[$at] } = 1;
        next if $at == 0;
        my $cell = $graph->{chart}{ ($at - 1) . ',2' };
        $found{"$tokens[$at - 1] $tokens[$at]"} = 1 if $cell->[0] > 0.5;
    }
    return \%found;
}

my @batch;
open(my $in, '<', $option{'-in'}) or die "cannot read $option{'-in'}: $!";
while (my $line = <$in>) {
    chomp $line;
    push @batch, [ map { parse_sentence([ split / /, $_ ]) } split /\t/, $line ];
}
close $in;

open(my $out, '>', $option{'-out'}) or die "cannot write $option{'-out'}: $!";
for my $image (@batch) {
    my ($candidate, @references) = @$image;
    my $said = propositions($candidate);
    my %known;
    for my $reference (@references) {
        my $also = propositions($reference);
        $known{$_} = 1 for keys %$also;
    }
    my $matched = grep { $known{$_} } keys %$said;
    my $precision = $matched / scalar(keys %$said);
    my $recall = $matched / scalar(keys %known);
    my $score = $matched ? 2 * $precision * $recall / ($precision + $recall) : 0;
    print $out "$score\n";
}
close $out;
