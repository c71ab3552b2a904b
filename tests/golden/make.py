"""Write the stored checkpoint again: ``python -m tests.golden.make`` (only for a new format)."""

from kmeander import ForgetfulKMeans
from tests import golden
from tests.streams import golden_stream

if __name__ == "__main__":
    model = ForgetfulKMeans(3, rho=0.5, random_state=0)
    for points in golden_stream()[:3]:
        model.partial_fit(points)
    model.save(golden.MODEL)
