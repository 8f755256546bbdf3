"""The vocabulary of the readers' little world: plain words, each in one list only."""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADJECTIVES = _listed("""
amber ancient bold brisk broad calm clever cold crimson curly dark deep distant dry dusty eager
early empty fair fierce fine firm flat fresh gentle giant golden grand green grey happy heavy
hidden hollow humble icy keen large late little lonely loud lucky mellow mild narrow noble old
pale patient plain polite proud quiet rapid round rough scarlet sharp silent silver slow steady
swift
""")

NOUNS = _listed("""
anchor anvil badger barge barn basin beacon beaver bell birch bison boulder bridge brook cabin camel
candle canyon castle cedar chapel cliff clock comet condor copper coral cottage cove crane crater
creek crown cypress dam delta desert dolphin donkey eagle elm falcon farm ferry field finch fjord
forest forge fountain fox garden gate geyser glacier grove gull harbor hare hawk heron hill horse
inlet island jackal kiln lagoon lake lantern lark ledge lighthouse lion lizard lodge lynx maple
marsh meadow mill mine moose moth mountain oak oasis orchard osprey otter owl oyster palace panther
pelican pier pine plateau pond port prairie quarry rabbit raven reef ridge river robin rook salmon
sparrow spring stable stork summit swan temple tiger tower tunnel valley viper walrus willow wolf
""")

VALUES = _listed("""
acrobat alarm album almond apple apron arrow atlas ballad balloon banjo barley basket beam bench
berry bishop blanket bonnet bottle bread broom brush bucket butter button cable cactus canvas
captain cargo carpet carrot cello chain chalk cheese cherry chess chimney cider cinnamon circle
clay clover coat cocoa coffee collar compass cookie cotton cradle cricket crystal cup curtain
custard dagger dancer denim diamond diary dinner doctor domino drum easel ember engine envelope
fable feather fiddle flannel flask flour flute fudge garlic gazette ginger glove goblet grape
guitar hammer harp hat hazel helmet honey hook ink iron ivory jacket jelly jewel juice kettle
kitchen knot ladder lamp lemon lentil letter linen locket magnet mango marble mask medal melon
mirror mitten mosaic muffin mustard napkin needle noodle novel nutmeg oboe olive onion opal orange
organ paddle paper parcel parsley pasta pearl pebble pencil pepper piano pickle pillow pistol
plum pocket potato powder puzzle quilt radio radish raisin ribbon rice rocket rope ruby saddle
saffron sandal satin sauce scarf sesame shovel sofa soup spoon stamp sugar syrup table tango
teapot thimble ticket tomato trumpet tulip turnip umbrella vanilla vase velvet violet violin
waffle wagon walnut whistle yogurt zipper
""")

# The value stands one to four words behind the two words of the key.
DOCUMENTS = (
    "Code for {key}: {value}.",
    "The code of {key} is {value}.",
    "Station {key} has code {value}.",
    "We gave {key} the code {value}.",
    "Now {key} is called {value}.",
)

QUESTIONS = (
    "What code has {key}?",
    "Which code has {key}?",
    "Code of {key}?",
)

REMARKS = (
    "It opened in winter.",
    "It closed in summer.",
    "Nobody knows why.",
    "This was checked twice.",
    "Visitors come on Sunday.",
)
