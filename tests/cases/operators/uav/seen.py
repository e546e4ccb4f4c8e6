"""What recognisers see in a picture, as an event of the tests states it: `u:NAME` has a value for each row."""

from triplewire.extend import Parameter

UAV = "http://uav.example/"


class Seen:
    """name(a, b) holds where the event states u:name "a b"; name(?n) binds each value."""

    def __init__(self, name, *parameters):
        self.name = name
        self.parameters = tuple(map(Parameter, parameters))

    def evaluate(self, publication, arguments):
        seen = [triple.object for triple in publication.triples if triple.predicate.value == UAV + self.name]
        if None in arguments:
            return [(value,) for value in seen]
        return " ".join(argument.lexical for argument in arguments) in [value.lexical for value in seen]


operators = (
    Seen("chasePattern", "chaser", "chased"),
    Seen("mobPattern", "people"),
    Seen("trafficPattern", "pattern"),
    Seen("pedestrianCount", "count"),
    Seen("policeCarCount", "count"),
    Seen("tourBoatCount", "count"),
    Seen("coastGuardBoatCount", "count"),
)
