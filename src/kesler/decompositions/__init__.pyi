from .error_correcting_code import ErrorCorrectingCode as ErrorCorrectingCode
from .kesler_reduction import KeslerReduction as KeslerReduction
from .label_tree import LabelTree as LabelTree
from .one_against_some import OneAgainstSome as OneAgainstSome
from .one_vs_one import OneVsOne as OneVsOne
from .one_vs_rest import OneVsRest as OneVsRest
from .tournaments import ErrorCorrectingTournament as ErrorCorrectingTournament
from .tournaments import FilterTree as FilterTree
